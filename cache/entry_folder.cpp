#include "cache/entry_folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "cache/entry_layout.hpp"

namespace kiln::cache {
namespace {

namespace fs = std::filesystem;

// No entry that we wrote is larger, so no larger file is read into memory.
constexpr std::uint64_t kMaxEntryBytes = kHeaderBytes + kSections.size() * kMaxSectionBytes + kFooterBytes;

// One folder on the way to an entry. Only its place and its owner matter, so no right to list it is needed.
Result<UniqueFd> enter_one(const UniqueFd& parent, const char* name, const fs::path& path, Owners owners) {
    UniqueFd fd(::openat(parent.get(), name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    if (!fd.valid() && (errno == ENOTDIR || errno == ELOOP)) {
        return fail(ErrorCode::environment, Stage::cache,
                    fmt::format("cache folder {}: expected a folder, found a symbolic link or a file",
                                path.string()));
    }
    if (!fd.valid() || ::fstat(fd.get(), &info) != 0) {
        return tl::unexpected(io_error("open folder", path, errno));
    }
    if (auto trusted = check_trusted(info, path, "cache folder", owners); !trusted) {
        return fail(trusted);
    }
    return fd;
}

}  // namespace

Error io_error(std::string_view what, const fs::path& path, int error) {
    return Error{error == ENOENT ? ErrorCode::not_found : ErrorCode::io, Stage::cache,
                 system_message(what, path, error)};
}

Result<void> check_trusted(const struct stat& info, const fs::path& path, std::string_view what,
                           Owners owners) {
    const uid_t user = ::geteuid();
    if (info.st_uid != user && (owners == Owners::user || info.st_uid != 0)) {
        return fail(
            ErrorCode::environment, Stage::cache,
            fmt::format("{} {}: expected one that belongs to {}user {}, found user {}", what, path.string(),
                        owners == Owners::user || user == 0 ? "" : "root or to ", user, info.st_uid));
    }
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return fail(ErrorCode::environment, Stage::cache,
                    fmt::format("{} {}: expected one that only its owner can write, found mode {:04o}", what,
                                path.string(), info.st_mode & 07777));
    }
    return {};
}

Result<UniqueFd> open_trusted_folder(const fs::path& folder, Owners owners) {
    UniqueFd fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct stat info {};
    if (!fd.valid() || ::fstat(fd.get(), &info) != 0) {
        return tl::unexpected(io_error("open folder", folder, errno));
    }
    if (auto trusted = check_trusted(info, folder, "cache folder", owners); !trusted) {
        return fail(trusted);
    }
    return fd;
}

Result<fs::path> absolute_folder(const fs::path& folder) {
    if (folder.empty()) {
        return fail(ErrorCode::environment, Stage::cache,
                    "cache folder: expected a path, found an empty one");
    }
    std::error_code error;
    auto absolute = fs::absolute(folder, error).lexically_normal();
    if (error) {
        return tl::unexpected(io_error("find", folder, error.value()));
    }
    return absolute.has_filename() ? absolute : absolute.parent_path();  // "cache/"
}

std::chrono::system_clock::time_point used_at(const struct stat& info) {
    // A file may bear a time that the clock can not express.
    constexpr std::int64_t kLast =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::nanoseconds::max()).count() - 1;
    const auto since_epoch = std::chrono::seconds(std::clamp<std::int64_t>(info.st_mtim.tv_sec, 0, kLast)) +
                             std::chrono::nanoseconds(info.st_mtim.tv_nsec);
    return std::chrono::system_clock::time_point(
        std::chrono::duration_cast<std::chrono::system_clock::duration>(since_epoch));
}

Result<std::vector<std::string>> names_in(const fs::path& folder) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator item(folder, error), end; !error && item != end; item.increment(error)) {
        names.push_back(item->path().filename().string());
    }
    if (error && error != std::errc::no_such_file_or_directory) {
        return tl::unexpected(io_error("list folder", folder, error.value()));
    }
    return names;
}

EntryFolder::EntryFolder(fs::path folder, Owners owners)
    : folder_(std::move(folder)), entries_(folder_ / fmt::format("v{}", kEntryVersion)), owners_(owners) {}

fs::path EntryFolder::path_of(const Digest& digest) const {
    const auto name = digest.hex();
    return entries_ / name.substr(0, 2) / (name + std::string(kEntrySuffix));
}

Result<UniqueFd> EntryFolder::enter(const fs::path& path) const {
    auto entered = open_trusted_folder(folder_, owners_);
    auto so_far = folder_;
    for (const auto& name : path.lexically_relative(folder_)) {
        if (!entered) {
            break;
        }
        so_far /= name;
        entered = enter_one(*entered, name.c_str(), so_far, owners_);
    }
    return entered;
}

Result<EntryFolder::OpenEntry> EntryFolder::open(const Digest& digest) const {
    const auto path = path_of(digest);
    const auto in_group = enter(path.parent_path());
    if (!in_group) {
        return tl::unexpected(in_group.error());
    }
    OpenEntry entry;
    // Not blocking: a pipe without a writer must not hold us up before we have seen that it is one.
    entry.fd = UniqueFd(
        ::openat(in_group->get(), path.filename().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    const bool is_refused = !entry.fd.valid() && (errno == ELOOP || errno == ENXIO);  // a link, a socket
    if (!is_refused && (!entry.fd.valid() || ::fstat(entry.fd.get(), &entry.info) != 0)) {
        return tl::unexpected(io_error("open", path, errno));
    }
    if (is_refused || !S_ISREG(entry.info.st_mode)) {
        return fail(ErrorCode::environment, Stage::cache,
                    fmt::format("cache entry {}: expected a regular file", path.string()));
    }
    if (auto trusted = check_trusted(entry.info, path, "cache entry", owners_); !trusted) {
        return fail(trusted);
    }
    if (static_cast<std::uint64_t>(entry.info.st_size) > kMaxEntryBytes) {
        return fail(ErrorCode::damaged, Stage::cache,
                    fmt::format("cache entry: expected at most {} bytes, found {}", kMaxEntryBytes,
                                entry.info.st_size));
    }
    return entry;
}

Result<Bytes> EntryFolder::read_bytes(const Digest& digest) const {
    auto opened = open(digest);
    if (!opened) {
        return fail(opened);
    }
    return read_file(opened->fd, path_of(digest), Stage::cache);
}

Result<std::vector<EntrySummary>> EntryFolder::list() const {
    if (const auto entered = enter(entries_); !entered) {
        if (entered.error().code == ErrorCode::not_found) {
            return std::vector<EntrySummary>();
        }
        return tl::unexpected(entered.error());
    }
    auto groups = names_in(entries_);
    if (!groups) {
        return fail(groups);
    }
    std::vector<EntrySummary> summaries;
    for (const auto& group : *groups) {
        std::error_code unknown;
        if (group.size() != 2 || (!fs::is_directory(entries_ / group, unknown) && !unknown)) {
            continue;  // nothing of ours
        }
        const auto entered = enter(entries_ / group);
        const auto names = entered ? names_in(entries_ / group) : tl::unexpected<Error>(entered.error());
        if (!names) {  // one group is no reason to hide the others
            if (names.error().code != ErrorCode::not_found) {
                log::warning("{}: its entries are not listed", names.error().message);
            }
            continue;
        }
        for (const auto& name : *names) {
            if (name.size() < kEntrySuffix.size() || !name.ends_with(kEntrySuffix)) {
                continue;
            }
            const auto digest =
                Digest::from_hex(std::string_view(name).substr(0, name.size() - kEntrySuffix.size()));
            struct stat info {};
            const auto path = entries_ / group / name;
            // Only what get() could find: in the right group, and still there.
            if (digest && path == path_of(*digest) && ::lstat(path.c_str(), &info) == 0) {
                summaries.push_back({*digest, path, static_cast<std::uint64_t>(info.st_size), used_at(info)});
            }
        }
    }
    std::ranges::sort(summaries, {}, &EntrySummary::key);
    return summaries;
}

Result<EntryFile> EntryFolder::verified(const EntrySummary& summary) const {
    auto bytes = read_bytes(summary.key);
    if (!bytes) {
        return fail(bytes);
    }
    auto file = EntryFile::verify(*std::move(bytes));
    const auto key = file ? file->key() : tl::unexpected<Error>(file.error());
    // Verified bytes under the wrong name are as bad as damaged ones.
    if (!key) {
        file = tl::unexpected(key.error());
    } else if (key->digest() != summary.key) {
        file =
            fail(ErrorCode::damaged, Stage::cache,
                 fmt::format("cache entry: expected the key of its name, found key {}", key->digest().hex()));
    }
    if (!file) {
        file.error().message = fmt::format("{}: {}", summary.path.string(), file.error().message);
    }
    return file;
}

Result<StoredEntry> EntryFolder::read(const EntrySummary& summary) const {
    const auto file = verified(summary);
    if (!file) {
        return tl::unexpected(file.error());
    }
    auto key = file->key();
    auto entry = file->entry();
    if (!entry) {
        entry.error().message = fmt::format("{}: {}", summary.path.string(), entry.error().message);
        return fail(entry);
    }
    return StoredEntry{*std::move(key), *std::move(entry)};
}

Result<std::optional<EntryFile>> EntryFolder::find_by_request(const Digest& request) {
    const auto summaries = list();
    if (!summaries) {
        return tl::unexpected(summaries.error());
    }
    for (const auto& summary : *summaries) {
        {
            const std::lock_guard lock(mutex_);
            const auto known = requests_.find(summary.key);
            if (known != requests_.end() && known->second != request) {
                continue;
            }
        }
        auto file = verified(summary);
        if (!file) {
            if (file.error().code != ErrorCode::not_found && is_news(file.error().message)) {
                log::warning("{}; passed over", file.error().message);
            }
            continue;
        }
        const auto found = file->key()->request_digest();
        const std::lock_guard lock(mutex_);
        requests_.emplace(summary.key, found);
        if (found == request) {
            return std::optional(*std::move(file));
        }
    }
    return std::optional<EntryFile>();
}

bool EntryFolder::is_news(const std::string& fault) {
    const std::lock_guard lock(mutex_);
    return known_faults_.insert(fault).second;
}

Result<EntryFile> verify_named(Bytes bytes, const Key& key) {
    auto file = EntryFile::verify(std::move(bytes));
    if (file && file->key_document() != key.document()) {
        return fail(ErrorCode::damaged, Stage::cache,
                    "cache entry: expected the key of its name, found another one");
    }
    return file;
}

}  // namespace kiln::cache
