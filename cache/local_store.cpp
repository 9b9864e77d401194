// The store in one folder. What it promises stands in store.hpp.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/file.hpp"
#include "base/log.hpp"
#include "cache/entry_folder.hpp"
#include "cache/lock.hpp"
#include "cache/prune.hpp"
#include "cache/store.hpp"

namespace kiln::cache {
namespace {

namespace fs = std::filesystem;

// A hit that is not older than this marks no new use.
constexpr auto kUseGrain = std::chrono::hours(1);
// An eviction goes on down to this part of the bound, so that the next put does not need another.
constexpr std::uint64_t kEvictTo = 7, kEvictOf = 8;
// A store lists itself for eviction after it has put this part of the room that it saw last: with as many
// writers at once, they fill that room before one of them looks.
constexpr std::uint64_t kShareOfRoom = 64;
constexpr std::uint64_t kGroups = 256;
// A wait for a build lock that is longer than this is worth a line.
constexpr auto kWorthSaying = std::chrono::seconds(1);
// Somebody may remove a folder as often as we make it.
constexpr int kAttempts = 16;

void sync_folder(const fs::path& folder) {
    const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd.valid()) {
        ::fsync(fd.get());  // best effort: the publication that follows reports what really fails
    }
}

// Makes the folder and its parents, private, and their names durable: an entry is only as durable as the path
// to it.
Result<void> make_folder(const fs::path& folder) {
    int error = 0;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        if (::mkdir(folder.c_str(), 0700) == 0) {
            sync_folder(folder.parent_path());
            return {};
        }
        error = errno;
        if (error == ENOENT && folder.has_relative_path()) {
            if (auto parent = make_folder(folder.parent_path()); !parent) {
                return parent;
            }
            continue;
        }
        struct stat info {};
        const bool is_there = error == EEXIST && ::stat(folder.c_str(), &info) == 0;
        if (is_there && S_ISDIR(info.st_mode)) {
            return {};
        }
        if (is_there || error != EEXIST || errno != ENOENT) {
            break;
        }
        // It was there, and has been removed since.
    }
    return tl::unexpected(io_error("create folder", folder, error == EEXIST ? ENOTDIR : error));
}

class LocalStore : public Store {
  public:
    LocalStore(fs::path folder, const StoreOptions& options)
        : folder_(std::move(folder), Owners::user), max_bytes_(options.max_bytes) {}

    Result<std::optional<Entry>> get(const Key& key) override {
        return look<Entry>(key, [](EntryFile file) { return file.entry(); });
    }
    Result<std::optional<EntryFile>> find(const Key& key) override {
        return look<EntryFile>(key, [](EntryFile file) { return Result<EntryFile>(std::move(file)); });
    }
    Result<std::optional<EntryFile>> find_by_request(const Digest& request) override;
    Result<void> put(const Key& key, const Entry& entry) override;
    Result<bool> erase(const Key& key) override;
    Result<std::vector<EntrySummary>> list() const override { return folder_.list(); }
    Result<StoredEntry> read(const EntrySummary& summary) const override { return folder_.read(summary); }
    Result<std::unique_ptr<BuildLock>> lock(const Key& key, const LockWait& wait) override;
    Result<PruneReport> prune(const PruneOptions& options) override { return prune_folder(folder_, options); }
    Result<PruneReport> clear() override;
    StoreStatistics statistics() const override {
        return {hits_, misses_, damaged_, puts_, refused_, evicted_};
    }
    const fs::path& folder() const override { return folder_.folder(); }

  private:
    [[nodiscard]] Result<void> make_inside(const fs::path& folder);
    template <class Wanted, class Decode>
    Result<std::optional<Wanted>> look(const Key& key, const Decode& decode);
    void refuse(const Key& key, const Error& error);
    enum class SetAside { reported, gone, replaced };
    SetAside set_aside(const EntryFolder::OpenEntry* read, const fs::path& path, const Error& error);
    void evict_after_put(const Digest& put, std::uint64_t bytes);
    void evict(const Digest& put);

    EntryFolder folder_;
    const std::uint64_t max_bytes_;  // constant after construction

    std::atomic<std::uint64_t> hits_{0};
    std::atomic<std::uint64_t> misses_{0};
    std::atomic<std::uint64_t> damaged_{0};
    std::atomic<std::uint64_t> puts_{0};
    std::atomic<std::uint64_t> refused_{0};
    std::atomic<std::uint64_t> evicted_{0};
    // Bytes put since the store's size was looked at, and how many may be put before it is again.
    std::atomic<std::uint64_t> put_since_look_{0};
    std::atomic<std::uint64_t> allowance_{0};
};

// As make_folder, of a folder inside of the store, one after the other: what a writer or a lock is led to is
// trusted as what a reader is led to, and nothing is made behind a symbolic link.
Result<void> LocalStore::make_inside(const fs::path& folder) {
    if (const auto root = folder_.enter(folder_.folder()); !root) {
        if (root.error().code != ErrorCode::not_found) {
            return tl::unexpected(root.error());
        }
        if (auto made = make_folder(folder_.folder()); !made) {
            return made;
        }
    }
    auto so_far = folder_.folder();
    for (const auto& name : folder.lexically_relative(folder_.folder())) {
        so_far /= name;
        auto entered = folder_.enter(so_far);
        if (!entered && entered.error().code == ErrorCode::not_found) {
            if (auto made = make_folder(so_far); !made) {
                return made;
            }
            entered = folder_.enter(so_far);
        }
        if (!entered) {
            return tl::unexpected(entered.error());
        }
    }
    return {};
}

// Best effort: a store on a read-only file system has hits too.
void mark_used(const EntryFolder::OpenEntry& entry) {
    const auto now = std::chrono::system_clock::now();
    if (used_at(entry.info) > now || now - used_at(entry.info) > kUseGrain) {
        const struct timespec times[] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
        static_cast<void>(::futimens(entry.fd.get(), times));
    }
}

template <class Wanted, class Decode>
Result<std::optional<Wanted>> LocalStore::look(const Key& key, const Decode& decode) {
    const auto path = folder_.path_of(key.digest());
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        auto opened = folder_.open(key.digest());
        auto bytes = opened ? read_file(opened->fd, path, Stage::cache) : Result<Bytes>(fail(opened));
        auto file = bytes ? verify_named(*std::move(bytes), key) : Result<EntryFile>(fail(bytes));
        auto wanted = file ? decode(*std::move(file)) : Result<Wanted>(fail(file));
        if (wanted) {
            mark_used(*opened);
            ++hits_;
            return std::optional<Wanted>(*std::move(wanted));
        }
        switch (wanted.error().code) {
            case ErrorCode::not_found:
                ++misses_;
                return std::optional<Wanted>();
            case ErrorCode::environment:
                refuse(key, wanted.error());
                ++refused_;
                ++misses_;
                return std::optional<Wanted>();
            case ErrorCode::damaged:
                break;
            default:
                return fail(wanted);
        }
        const auto outcome = set_aside(opened ? &*opened : nullptr, path, wanted.error());
        if (outcome == SetAside::replaced) {
            continue;
        }
        damaged_ += outcome == SetAside::reported ? 1 : 0;
        break;
    }
    ++misses_;
    return std::optional<Wanted>();
}

// A put replaces it: the folder is ours, whoever owns the file.
void LocalStore::refuse(const Key& key, const Error& error) {
    const auto path = folder_.path_of(key.digest()).string();
    if (folder_.is_news(path + error.message)) {
        log::event(log::Level::warning, "refuse", {{"path", path}, {"reason", error.message}});
    }
}

// Somebody may have rebuilt the entry since it was read, or moved it away; a good one must not be moved away
// for the bad one's faults. So it is looked at under the lock that writers share. While ours is open, no
// other file has its number.
LocalStore::SetAside LocalStore::set_aside(const EntryFolder::OpenEntry* read, const fs::path& path,
                                           const Error& error) {
    const auto alone = lock_group(path.parent_path(), Hold::alone, kRemoverPatience);
    struct stat named {};
    const bool is_named = ::lstat(path.c_str(), &named) == 0;
    if (read != nullptr && !is_named && errno == ENOENT) {
        return SetAside::gone;
    }
    if (read != nullptr && is_named &&
        (named.st_ino != read->info.st_ino || named.st_dev != read->info.st_dev)) {
        return SetAside::replaced;
    }
    const auto folder = folder_.folder() / "damaged";
    const auto aside = folder / path.filename();
    const bool moved = alone != nullptr && make_inside(folder) && ::rename(path.c_str(), aside.c_str()) == 0;
    log::event(log::Level::warning, "damaged",
               {{"path", path.string()},
                {"reason", error.message},
                {"outcome", moved ? fmt::format("moved to {}", aside.string())
                                  : fmt::format("could not be moved to {}", aside.string())}});
    return SetAside::reported;
}

Result<std::optional<EntryFile>> LocalStore::find_by_request(const Digest& request) {
    auto found = folder_.find_by_request(request);
    if (found && *found) {
        if (const auto opened = folder_.open((*found)->key()->digest())) {
            mark_used(*opened);
        }
    }
    if (found) {
        ++(*found ? hits_ : misses_);
    }
    return found;
}

Result<void> LocalStore::put(const Key& key, const Entry& entry) {
    auto file = serialise(key, entry);
    if (!file) {
        return fail(file);
    }
    const auto path = folder_.path_of(key.digest());
    // The folder may be wiped between the two steps.
    Result<void> published;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
        published = make_inside(path.parent_path());
        if (published) {
            const auto shared = lock_group(path.parent_path(), Hold::shared, kWriterPatience);
            published = publish_file(path, *file, Stage::cache);
        }
        if (published || published.error().code != ErrorCode::not_found) {
            break;
        }
    }
    if (published) {
        ++puts_;
        evict_after_put(key.digest(), file->size());
    }
    return published;
}

// Listing the whole store at every put would cost more than the put. So it is listed only when the last
// listing's room may be used up; and before the first listing, when the one group just put into, a 256th of
// the store, is that heavy that the store may be half full.
void LocalStore::evict_after_put(const Digest& put, std::uint64_t bytes) {
    if (max_bytes_ == 0 || (put_since_look_ += bytes) <= allowance_) {
        return;
    }
    put_since_look_ = 0;
    if (bytes_of_group(folder_, put) <= max_bytes_ / 2 / kGroups) {
        allowance_ = max_bytes_ / kShareOfRoom / kGroups;
        return;
    }
    evict(put);
}

void LocalStore::evict(const Digest& put) {
    std::uint64_t total = 0;
    allowance_ = max_bytes_ / kShareOfRoom / kGroups;  // where nothing comes of it, not again at every put
    const auto say_once = [this](const Error& error) {
        if (folder_.is_news("evict " + error.message)) {
            log::warning("{}: not evicted", error.message);
        }
    };
    const auto entries = folder_.list();
    if (!entries) {
        say_once(entries.error());
        return;
    }
    for (const auto& entry : *entries) {
        total += entry.bytes;
    }
    if (total <= max_bytes_) {
        allowance_ = (max_bytes_ - total) / kShareOfRoom;
        return;
    }
    const auto lock_path = folder_.folder() / kEvictLock;
    const auto made = make_inside(lock_path.parent_path());
    const auto alone = made ? take_lock(lock_path) : tl::unexpected(made.error());
    if (alone && *alone == nullptr) {
        return;  // somebody else is at it
    }
    const auto report = prune_folder(folder_, {.max_bytes = max_bytes_ / kEvictOf * kEvictTo}, put);
    if (!report) {
        say_once(report.error());
        return;
    }
    if (!report->faults.empty()) {
        say_once(report->faults.front());
    }
    evicted_ += report->removed.size();
    allowance_ = (max_bytes_ - std::min(max_bytes_, report->kept_bytes)) / kShareOfRoom;
    log::event(log::Level::info, "evict",
               {{"folder", folder_.folder().string()},
                {"entries", report->removed.size()},
                {"bytes", report->bytes},
                {"kept_bytes", report->kept_bytes},
                {"limit", max_bytes_}});
}

Result<PruneReport> LocalStore::clear() {
    auto report = clear_folder(folder_);
    if (report) {
        remove_empty_folders(folder_);
    }
    return report;
}

Result<bool> LocalStore::erase(const Key& key) {
    const auto path = folder_.path_of(key.digest());
    if (const auto entered = folder_.enter(path.parent_path()); !entered) {
        if (entered.error().code == ErrorCode::not_found) {
            return false;
        }
        return tl::unexpected(entered.error());
    }
    if (::unlink(path.c_str()) == 0) {
        return true;
    }
    if (errno == ENOENT) {
        return false;
    }
    return tl::unexpected(io_error("remove", path, errno));
}

// Not the kernel's own wait, which nothing but a signal ends.
Result<std::unique_ptr<BuildLock>> LocalStore::lock(const Key& key, const LockWait& wait) {
    const auto path = folder_.folder() / "locks" / (key.digest().hex() + ".lock");
    const auto start = std::chrono::steady_clock::now();
    bool said = false;
    for (std::chrono::milliseconds pause(1);; pause = next_pause(pause)) {
        if (auto made = make_inside(path.parent_path()); !made) {
            return fail(made);
        }
        auto lock = take_lock(path);
        if (lock ? *lock != nullptr : lock.error().code != ErrorCode::not_found) {
            return lock;
        }
        const auto waited = std::chrono::steady_clock::now() - start;
        const bool stopped = wait.stop != nullptr && *wait.stop;
        if (stopped || waited >= wait.patience) {
            if (!stopped) {
                log::event(log::Level::warning, "lock",
                           {{"path", path.string()},
                            {"reason", "another process holds it for too long"},
                            {"outcome", "built without it"}});
            }
            return std::make_unique<BuildLock>();
        }
        if (!said && waited > kWorthSaying) {
            said = true;
            log::event(log::Level::info, "lock",
                       {{"path", path.string()}, {"outcome", "waiting for another process that builds it"}});
        }
        std::this_thread::sleep_for(pause);
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

Result<std::unique_ptr<Store>> Store::open(const fs::path& folder, const StoreOptions& options) {
    auto absolute = absolute_folder(folder);
    if (!absolute) {
        return fail(absolute);
    }
    if (options.create) {
        if (auto made = make_folder(*absolute); !made) {
            made.error().code = ErrorCode::environment;
            return fail(made);
        }
    }
    if (auto opened = open_trusted_folder(*absolute, Owners::user); !opened) {
        if (options.create || opened.error().code != ErrorCode::not_found) {
            opened.error().code = ErrorCode::environment;
        }
        return fail(opened);
    }
    return std::make_unique<LocalStore>(*std::move(absolute), options);
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
