// A folder of cache entries: bytes under keys, published atomically and durably, verified on every read.
//
// Invariants:
// clang-format off
//  1. A reader sees no entry or a whole one: publication is temporary file, fsync, rename, fsync of the
//     folder.
//  2. What get() returns was stored under exactly this key: the key document in the entry is compared, and
//     every byte is covered by a digest that was checked.
//  3. A damaged entry is a miss: it is reported, moved to the folder "damaged", and can be put again.
//  4. Readers take no lock, but to move a damaged entry away. Nothing in an entry or a file name depends on where the store lies.
//  5. Removing an entry (erase, prune, eviction) is one unlink: who has it open reads on, everybody else
//     misses and builds. Whoever prunes, evicts or moves a damaged entry away holds the lock of the entry's
//     folder DI alone, and whoever puts shares it: what is put meanwhile is never taken for what was there
//     before. Removing a temporary file or a lock file happens under that file's own lock, so
//     that never a live writer's or holder's is taken.
//
// Layout, every folder 0700, every file 0600 (v1 is kEntryVersion; DIGEST is Key::digest() in hexadecimal, DI
// its first two digits):
//
//   FOLDER/v1/DI/DIGEST.entry         one entry, as entry.hpp says
//                                     Its time of modification is that of its last use: set by put, and by
//                                     a hit where it is older than an hour. Not the time of access, which a
//                                     backup sets too, and which mounts with noatime leave alone. Not at
//                                     every hit: order matters over days, and an engine that starts would
//                                     write an inode for each kernel. Best effort: a hit needs no right to
//                                     write
//   FOLDER/v1/DI/DIGEST.entry.*.tmp   being written, or left by a writer that was killed: nobody reads it;
//                                     publish_file() says how the two are told apart
//   FOLDER/locks/DIGEST.lock          empty; the kernel's lock on it is the build lock. Nothing is ever
//                                     written into it
//   FOLDER/locks/evict.lock           held by whoever evicts, so that not every writer does at once
//   FOLDER/damaged/DIGEST.entry       the last damaged file found under that name
// clang-format on
//
// The folder may be wiped while stores are open on it: what is needed is made again. Other folders vN are
// those of other versions of kiln; nothing here touches them, or any file of another name.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "cache/entry.hpp"
#include "cache/key.hpp"
#include "cache/layer.hpp"

namespace kiln::cache {

struct StoreOptions {
    // Bound of the entries' bytes, together; 0: none. A put that goes over it evicts what was used least
    // recently, down to seven eighths of the bound. The bound is kept on the average, not at every instant:
    // what other processes put at the same moment may go over it until one of them looks, and the entry just
    // put always stays, were it larger than the bound.
    std::uint64_t max_bytes = 0;
    // Otherwise a folder that does not exist is not_found.
    bool create = true;
};

struct PruneOptions {
    std::optional<std::uint64_t> max_bytes =
        std::nullopt;  // the least recently used entries go until the rest fits
    std::optional<std::chrono::seconds> max_age = std::nullopt;  // entries not used for longer go
    bool dry_run = false;                                        // report, and remove nothing
};

// What went, or with dry_run would go.
struct PruneReport {
    std::vector<EntrySummary> removed;  // entries, the least recently used first
    std::uint64_t temporaries = 0;      // left by writers that were killed
    std::uint64_t locks = 0;            // files of locks that nobody holds
    std::uint64_t damaged = 0;          // files that had been set aside
    std::uint64_t bytes = 0;            // of all that
    std::uint64_t kept_entries = 0;
    std::uint64_t kept_bytes = 0;
    std::vector<Error> faults;  // what the system refused to remove or to list; the rest was done
};

// Held while one process or thread builds the entry of one key. Released by the destructor, and by the kernel
// when the owner dies. Outlives the store that gave it without harm.
class BuildLock {
  public:
    BuildLock() = default;
    BuildLock(const BuildLock&) = delete;
    BuildLock& operator=(const BuildLock&) = delete;
    virtual ~BuildLock() = default;
};

struct LockWait {
    // As long as the start of a compiler and a compile may take together: whoever holds a build lock for
    // longer is suspended, or hangs.
    std::chrono::milliseconds patience = std::chrono::minutes(4);
    // Ends the wait, within a twentieth of a second, when it turns true. May be null.
    const std::atomic<bool>* stop = nullptr;
};

// Thread safe; any number of processes may share the folder.
class Store : public Layer {
  public:
    // Creates the folder and its parents (0700) where they do not exist; a relative path is taken from the
    // working folder of now. `environment` when the folder can not be made, belongs to another user, or can
    // be written by group or others: the code in it will run with this user's rights.
    [[nodiscard]] static Result<std::unique_ptr<Store>> open(const std::filesystem::path& folder,
                                                             const StoreOptions& options = {});

    // Replaces what is there; `environment`, with nothing written, where get() would refuse it for the
    // folders on the way to it. When it returns without an error, the entry outlives a power cut.
    [[nodiscard]] virtual Result<void> put(const Key& key, const Entry& entry) = 0;

    // True when there was one. `environment` as of put().
    [[nodiscard]] virtual Result<bool> erase(const Key& key) = 0;

    // Waits until no other thread or process holds this key's lock; never ask twice in one thread. The caller
    // looks again with get() before it builds: one compile per key follows from that. Two compiles rather
    // than an endless wait: an empty lock is returned when `wait` ends first, and at once where the file
    // system knows no locks. A wait of more than a second is said in the log.
    [[nodiscard]] virtual Result<std::unique_ptr<BuildLock>> lock(const Key& key,
                                                                  const LockWait& wait = {}) = 0;

    // Removes entries by size and age, then what was left over: stale temporary files, the files of locks
    // that nobody holds, damaged files. An entry whose time of use lies in the future gets the time of now,
    // so that it ages. Safe beside anything that other threads and processes do meanwhile; an entry that is
    // put between being listed and being removed stays, and so does one that is used, unless it is read at
    // the very moment of its removal. Where the file system knows no locks, the same goes for a put. An error
    // when the store's own folder can not be listed.
    [[nodiscard]] virtual Result<PruneReport> prune(const PruneOptions& options) = 0;

    // All entries, used meanwhile or not, and all that prune() sweeps, then the folders that are empty by it,
    // but FOLDER itself. What is being written or built meanwhile stays.
    [[nodiscard]] virtual Result<PruneReport> clear() = 0;
};

// KILN_CACHE_DIR is the caller's to read; this is the default: $XDG_CACHE_HOME/kiln, else $HOME/.cache/kiln.
// A relative path in either is ignored, as the XDG specification asks. `environment` when none is left.
[[nodiscard]] Result<std::filesystem::path> default_store_folder();

}  // namespace kiln::cache
