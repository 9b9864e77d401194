// The store in one folder. What it promises stands in store.hpp.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/file.hpp"
#include "base/log.hpp"
#include "cache/entry_layout.hpp"
#include "cache/lock.hpp"
#include "cache/store.hpp"

namespace kiln::cache {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEntrySuffix = ".entry";
// No entry that we wrote is larger, so no larger file is read into memory.
constexpr std::uint64_t kMaxEntryBytes = kHeaderBytes + kSections.size() * kMaxSectionBytes + kFooterBytes;

Error io_error(std::string_view what, const fs::path& path, int error) {
    return Error{error == ENOENT ? ErrorCode::not_found : ErrorCode::io, Stage::cache,
                 system_message(what, path, error)};
}

void sync_folder(const fs::path& folder) {
    const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd.valid()) {
        ::fsync(fd.get());  // best effort: the publication that follows reports what really fails
    }
}

// Makes the folder and its parents, private, and their names durable: an entry is only as durable as the path
// to it.
Result<void> make_folder(const fs::path& folder) {
    if (::mkdir(folder.c_str(), 0700) == 0) {
        sync_folder(folder.parent_path());
        return {};
    }
    if (errno == ENOENT && folder.has_relative_path()) {
        if (auto parent = make_folder(folder.parent_path()); !parent) {
            return parent;
        }
        if (::mkdir(folder.c_str(), 0700) == 0) {
            sync_folder(folder.parent_path());
            return {};
        }
    }
    const int error = errno;
    struct stat info {};
    if (error == EEXIST && ::stat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
        return {};
    }
    return tl::unexpected(io_error("create folder", folder, error == EEXIST ? ENOTDIR : error));
}

// Code from this folder will run with the rights of this user, so nobody else may have put it there.
Result<void> check_private(const fs::path& folder) {
    struct stat info {};
    if (::stat(folder.c_str(), &info) != 0) {
        return tl::unexpected(io_error("stat", folder, errno));
    }
    if (info.st_uid != ::geteuid()) {
        return fail(ErrorCode::environment, Stage::cache,
                    fmt::format("cache folder {}: expected one that belongs to user {}, found user {}",
                                folder.string(), ::geteuid(), info.st_uid));
    }
    if ((info.st_mode & 0022) != 0) {
        return fail(
            ErrorCode::environment, Stage::cache,
            fmt::format("cache folder {}: expected one that only its owner can write, found mode {:04o}",
                        folder.string(), info.st_mode & 07777));
    }
    return {};
}

// The names in a folder, by no particular order. A folder that does not exist has none.
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

class LocalStore : public Store {
  public:
    explicit LocalStore(fs::path folder)
        : folder_(std::move(folder)), entries_(folder_ / fmt::format("v{}", kEntryVersion)) {}

    Result<std::optional<Entry>> get(const Key& key) override;
    Result<void> put(const Key& key, const Entry& entry) override;
    Result<bool> erase(const Key& key) override;
    Result<std::vector<EntrySummary>> list() const override;
    Result<StoredEntry> read(const EntrySummary& summary) const override;
    Result<std::unique_ptr<BuildLock>> lock(const Key& key) override;
    StoreStatistics statistics() const override { return {hits_, misses_, damaged_, puts_}; }
    const fs::path& folder() const override { return folder_; }

  private:
    fs::path path_of(const Digest& digest) const {
        const auto name = digest.hex();
        return entries_ / name.substr(0, 2) / (name + std::string(kEntrySuffix));
    }
    Result<Bytes> read_bounded(const fs::path& path) const;
    void set_aside(const fs::path& path, const Error& error);

    // Constant after construction.
    const fs::path folder_;
    const fs::path entries_;

    std::atomic<std::uint64_t> hits_{0};
    std::atomic<std::uint64_t> misses_{0};
    std::atomic<std::uint64_t> damaged_{0};
    std::atomic<std::uint64_t> puts_{0};
};

Result<Bytes> LocalStore::read_bounded(const fs::path& path) const {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) {
        return tl::unexpected(io_error("stat", path, errno));
    }
    if (S_ISREG(info.st_mode) && static_cast<std::uint64_t>(info.st_size) > kMaxEntryBytes) {
        return fail(
            ErrorCode::damaged, Stage::cache,
            fmt::format("cache entry: expected at most {} bytes, found {}", kMaxEntryBytes, info.st_size));
    }
    return read_file(path, Stage::cache);
}

// Verified bytes under the wrong name are as bad as damaged ones: the key must be the one that the name
// stands for.
Result<StoredEntry> parse_named(ByteView file, const Digest& name) {
    auto stored = parse_entry(file);
    if (stored && stored->key.digest() != name) {
        return fail(ErrorCode::damaged, Stage::cache,
                    fmt::format("cache entry: expected the key of its name, found key {}",
                                stored->key.digest().hex()));
    }
    return stored;
}

Result<std::optional<Entry>> LocalStore::get(const Key& key) {
    const auto path = path_of(key.digest());
    while (true) {
        auto file = read_bounded(path);
        if (!file && file.error().code == ErrorCode::not_found) {
            ++misses_;
            return std::nullopt;
        }
        if (!file && file.error().code != ErrorCode::damaged) {
            return fail(file);
        }
        auto stored = file ? parse_named(*file, key.digest()) : Result<StoredEntry>(fail(file));
        if (stored && stored->key == key) {
            ++hits_;
            return std::move(stored->entry);
        }
        // Somebody may have rebuilt the entry since it was read; a good one must not be moved away for the
        // bad one's faults.
        if (file) {
            const auto again = read_bounded(path);
            if (again && *again != *file) {
                continue;
            }
            if (!again && again.error().code == ErrorCode::not_found) {  // moved away by another reader
                ++misses_;
                return std::nullopt;
            }
        }
        set_aside(path, stored.error());
        ++damaged_;
        ++misses_;
        return std::nullopt;
    }
}

void LocalStore::set_aside(const fs::path& path, const Error& error) {
    const auto folder = folder_ / "damaged";
    const auto aside = folder / path.filename();
    const auto made = make_folder(folder);
    if (made && ::rename(path.c_str(), aside.c_str()) == 0) {
        log::warning("{}: {}; moved to {}", path.string(), error.message, aside.string());
    } else {
        log::warning("{}: {}; could not be moved to {}", path.string(), error.message, aside.string());
    }
}

Result<void> LocalStore::put(const Key& key, const Entry& entry) {
    auto file = serialise(key, entry);
    if (!file) {
        return fail(file);
    }
    const auto path = path_of(key.digest());
    // The folder may be wiped between the two steps; once more is enough unless somebody keeps wiping.
    Result<void> published;
    for (int attempt = 0; attempt < 2; ++attempt) {
        if (auto made = make_folder(path.parent_path()); !made) {
            return made;
        }
        published = publish_file(path, *file, Stage::cache);
        if (published || published.error().code != ErrorCode::not_found) {
            break;
        }
    }
    if (published) {
        ++puts_;
    }
    return published;
}

Result<bool> LocalStore::erase(const Key& key) {
    const auto path = path_of(key.digest());
    if (::unlink(path.c_str()) == 0) {
        return true;
    }
    if (errno == ENOENT) {
        return false;
    }
    return tl::unexpected(io_error("remove", path, errno));
}

Result<std::vector<EntrySummary>> LocalStore::list() const {
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
        const auto names = names_in(entries_ / group);
        if (!names) {  // one group is no reason to hide the others
            log::warning("{}: its entries are not listed", names.error().message);
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
            if (digest && path == path_of(*digest) && ::stat(path.c_str(), &info) == 0) {
                summaries.push_back({*digest, path, static_cast<std::uint64_t>(info.st_size)});
            }
        }
    }
    std::ranges::sort(summaries, {}, &EntrySummary::key);
    return summaries;
}

Result<StoredEntry> LocalStore::read(const EntrySummary& summary) const {
    const auto file = read_bounded(summary.path);
    auto stored = file ? parse_named(*file, summary.key) : Result<StoredEntry>(tl::unexpected(file.error()));
    if (!stored && stored.error().code == ErrorCode::damaged) {
        stored.error().message = fmt::format("{}: {}", summary.path.string(), stored.error().message);
    }
    return stored;
}

Result<std::unique_ptr<BuildLock>> LocalStore::lock(const Key& key) {
    const auto folder = folder_ / "locks";
    while (true) {
        if (auto made = make_folder(folder); !made) {
            return fail(made);
        }
        auto lock = take_lock(folder / (key.digest().hex() + ".lock"));
        if (lock || lock.error().code != ErrorCode::not_found) {
            return lock;
        }
    }
}

// An XDG path counts only when it is absolute.
std::optional<fs::path> absolute_from_environment(const char* name) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value != '/') {
        return std::nullopt;
    }
    return fs::path(value);
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(const fs::path& folder) {
    if (folder.empty()) {
        return fail(ErrorCode::environment, Stage::cache,
                    "cache folder: expected a path, found an empty one");
    }
    std::error_code error;
    auto absolute = fs::absolute(folder, error).lexically_normal();
    if (error) {
        return tl::unexpected(io_error("find", folder, error.value()));
    }
    if (!absolute.has_filename()) {
        absolute = absolute.parent_path();  // "cache/"
    }
    if (auto made = make_folder(absolute); !made) {
        made.error().code = ErrorCode::environment;
        return fail(made);
    }
    if (auto checked = check_private(absolute); !checked) {
        return fail(checked);
    }
    return std::make_unique<LocalStore>(std::move(absolute));
}

Result<fs::path> default_store_folder() {
    if (const auto cache = absolute_from_environment("XDG_CACHE_HOME")) {
        return *cache / "kiln";
    }
    if (const auto home = absolute_from_environment("HOME")) {
        return *home / ".cache" / "kiln";
    }
    return fail(ErrorCode::environment, Stage::cache,
                "cache folder: expected an absolute path in XDG_CACHE_HOME or HOME, found none");
}

}  // namespace kiln::cache
