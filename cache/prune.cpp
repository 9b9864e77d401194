#include "cache/prune.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <tuple>
#include <utility>

#include "base/file.hpp"
#include "cache/lock.hpp"

namespace kiln::cache {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporarySuffix = ".tmp";
constexpr std::string_view kLockSuffix = ".lock";

bool is_digest(std::string_view text) {
    return Digest::from_hex(text).has_value();
}

// "DIGEST.entry.PID.RANDOM.tmp", as publish_file() names it.
bool is_temporary_name(std::string_view name) {
    constexpr std::size_t kDigits = 64;
    return name.size() > kDigits && is_digest(name.substr(0, kDigits)) &&
           name.substr(kDigits).starts_with(kEntrySuffix) && name.ends_with(kTemporarySuffix);
}

bool is_name_with(std::string_view name, std::string_view suffix) {
    return name.ends_with(suffix) && is_digest(name.substr(0, name.size() - suffix.size()));
}

class Pruning {
  public:
    Pruning(const EntryFolder& folder, const PruneOptions& options, const std::optional<Digest>& keep,
            bool everything)
        : folder_(folder), options_(options), keep_(keep), everything_(everything) {}

    Result<PruneReport> run() {
        auto entries = folder_.list();
        if (!entries) {
            return fail(entries);
        }
        prune_entries(*std::move(entries));
        sweep_temporaries();
        sweep(folder_.folder() / "locks", kLockSuffix, report_.locks, [&](const fs::path& path) {
            return sweep_lock(path, options_.dry_run ? Sweep::look : Sweep::remove);
        });
        sweep(folder_.folder() / "damaged", kEntrySuffix, report_.damaged,
              [&](const fs::path& path) { return remove(path); });
        return std::move(report_);
    }

  private:
    void prune_entries(std::vector<EntrySummary> entries);
    bool remove_entry(const EntrySummary& entry);
    void sweep_temporaries();
    template <class Remove>
    void sweep(const fs::path& folder, std::string_view suffix, std::uint64_t& count, const Remove& removed);

    // None of a folder that others could have written, or that lies behind a symbolic link.
    std::vector<std::string> names(const fs::path& folder) {
        const auto entered = folder_.enter(folder);
        auto found = entered ? names_in(folder) : tl::unexpected<Error>(entered.error());
        if (!found && found.error().code == ErrorCode::not_found) {
            return {};
        }
        if (!found) {
            report_.faults.push_back(std::move(found.error()));
            return {};
        }
        return *std::move(found);
    }

    // True when it is gone now, whoever removed it.
    bool remove(const fs::path& path) {
        if (options_.dry_run || ::unlink(path.c_str()) == 0 || errno == ENOENT) {
            return true;
        }
        report_.faults.push_back(io_error("remove", path, errno));
        return false;
    }

    const EntryFolder& folder_;
    const PruneOptions options_;
    const std::optional<Digest> keep_;
    const bool everything_;  // whatever the options say
    PruneReport report_;
};

void Pruning::prune_entries(std::vector<EntrySummary> entries) {
    std::ranges::sort(entries, {},
                      [](const EntrySummary& entry) { return std::tie(entry.last_used, entry.key); });
    std::uint64_t total = 0;
    for (const auto& entry : entries) {
        total += entry.bytes;
    }
    const auto now = std::chrono::system_clock::now();
    for (auto& entry : entries) {
        const bool too_much = options_.max_bytes && total > *options_.max_bytes;
        // In seconds: the longest age that a user may ask for does not fit into finer units.
        const bool too_old = options_.max_age && std::chrono::ceil<std::chrono::seconds>(
                                                     now - entry.last_used) > *options_.max_age;
        if ((everything_ || too_much || too_old) && entry.key != keep_ && remove_entry(entry)) {
            total -= entry.bytes;
            report_.bytes += entry.bytes;
            report_.removed.push_back(std::move(entry));
        } else {
            if (entry.last_used > now && !options_.dry_run) {
                // By a clock that was wrong; it would stay for ever. Best effort.
                const struct timespec times[] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
                ::utimensat(AT_FDCWD, entry.path.c_str(), times, AT_SYMLINK_NOFOLLOW);
            }
            ++report_.kept_entries;
            report_.kept_bytes += entry.bytes;
        }
    }
}

// False when it stays: it was used or put again since it was listed, or others hold its group, or the system
// refuses.
bool Pruning::remove_entry(const EntrySummary& entry) {
    const auto alone = lock_group(entry.path.parent_path(), Hold::alone, kRemoverPatience);
    struct stat info {};
    if (alone == nullptr ||
        (!everything_ && ::lstat(entry.path.c_str(), &info) == 0 && used_at(info) != entry.last_used)) {
        return false;
    }
    return remove(entry.path);
}

void Pruning::sweep_temporaries() {
    for (const auto& group : names(folder_.entries())) {
        if (group.size() != 2) {
            continue;
        }
        for (const auto& name : names(folder_.entries() / group)) {
            const auto path = folder_.entries() / group / name;
            struct stat info {};
            if (is_temporary_name(name) && ::lstat(path.c_str(), &info) == 0 &&
                sweep_temporary(path, options_.dry_run ? Sweep::look : Sweep::remove)) {
                ++report_.temporaries;
                report_.bytes += static_cast<std::uint64_t>(info.st_size);
            }
        }
    }
}

// The files DIGEST`suffix` of a folder.
template <class Remove>
void Pruning::sweep(const fs::path& folder, std::string_view suffix, std::uint64_t& count,
                    const Remove& removed) {
    for (const auto& name : names(folder)) {
        struct stat info {};
        const auto path = folder / name;
        if (is_name_with(name, suffix) && ::lstat(path.c_str(), &info) == 0 && removed(path)) {
            ++count;
            report_.bytes += static_cast<std::uint64_t>(info.st_size);
        }
    }
}

}  // namespace

Result<PruneReport> prune_folder(const EntryFolder& folder, const PruneOptions& options,
                                 const std::optional<Digest>& keep) {
    return Pruning(folder, options, keep, false).run();
}

Result<PruneReport> clear_folder(const EntryFolder& folder) {
    return Pruning(folder, {}, {}, true).run();
}

void remove_empty_folders(const EntryFolder& folder) {
    const auto is_ours = [&](const fs::path& path) { return folder.enter(path).has_value(); };
    if (const auto groups = names_in(folder.entries()); groups && is_ours(folder.entries())) {
        for (const auto& group : *groups) {
            if (group.size() == 2) {
                ::rmdir((folder.entries() / group).c_str());
            }
        }
    }
    ::rmdir(folder.entries().c_str());
    if (is_ours(folder.folder() / "locks")) {
        static_cast<void>(sweep_lock(folder.folder() / kEvictLock, Sweep::remove));
    }
    ::rmdir((folder.folder() / "locks").c_str());
    ::rmdir((folder.folder() / "damaged").c_str());
}

std::uint64_t bytes_of_group(const EntryFolder& folder, const Digest& digest) {
    const auto group = folder.path_of(digest).parent_path();
    std::uint64_t bytes = 0;
    const auto names = names_in(group);
    for (const auto& name : names ? *names : std::vector<std::string>()) {
        struct stat info {};
        if (name.ends_with(kEntrySuffix) && ::lstat((group / name).c_str(), &info) == 0) {
            bytes += static_cast<std::uint64_t>(info.st_size);
        }
    }
    return bytes;
}

}  // namespace kiln::cache
