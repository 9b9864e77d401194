// A folder of cache entries: bytes under keys, published atomically and durably, verified on every read.
//
// Invariants:
// clang-format off
//  1. A reader sees no entry or a whole one: publication is temporary file, fsync, rename, fsync of the
//     folder.
//  2. What get() returns was stored under exactly this key: the key document in the entry is compared, and
//     every byte is covered by a digest that was checked.
//  3. A damaged entry is a miss: it is reported, moved to the folder "damaged", and can be put again.
//  4. Readers take no lock. Nothing in an entry or a file name depends on where the store lies.
//
// Layout, every folder 0700, every file 0600 (v1 is kEntryVersion; DIGEST is Key::digest() in hexadecimal, DI
// its first two digits):
//
//   FOLDER/v1/DI/DIGEST.entry         one entry, as entry.hpp says
//   FOLDER/v1/DI/DIGEST.entry.*.tmp   being written, or left by a writer that was killed: nobody reads it
//   FOLDER/locks/DIGEST.lock          empty; the kernel's lock on it is the build lock. Nothing is ever
//                                     written into it
//   FOLDER/damaged/DIGEST.entry       the last damaged file found under that name
// clang-format on
//
// The folder may be wiped while stores are open on it: what is needed is made again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "cache/entry.hpp"
#include "cache/key.hpp"

namespace kiln::cache {

// Of one Store object, since it was opened.
struct StoreStatistics {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;  // damaged entries included
    std::uint64_t damaged = 0;
    std::uint64_t puts = 0;  // that succeeded

    friend bool operator==(const StoreStatistics&, const StoreStatistics&) = default;
};

struct EntrySummary {
    Digest key;
    std::filesystem::path path;
    std::uint64_t bytes = 0;  // of the file
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

// Thread safe; any number of processes may share the folder.
class Store {
  public:
    // Creates the folder and its parents (0700) where they do not exist; a relative path is taken from the
    // working folder of now. `environment` when the folder can not be made, belongs to another user, or can
    // be written by group or others: the code in it will run with this user's rights.
    [[nodiscard]] static Result<std::unique_ptr<Store>> open(const std::filesystem::path& folder);
    virtual ~Store() = default;

    // The entry, or nothing. An error only when the operating system refuses to read what is there.
    [[nodiscard]] virtual Result<std::optional<Entry>> get(const Key& key) = 0;

    // Replaces what is there. When it returns without an error, the entry outlives a power cut.
    [[nodiscard]] virtual Result<void> put(const Key& key, const Entry& entry) = 0;

    // True when there was one.
    [[nodiscard]] virtual Result<bool> erase(const Key& key) = 0;

    // By ascending key. Files are not opened: a damaged one is listed like any other. A folder of entries
    // that can not be read is left out, with a warning; the store's own is an error.
    [[nodiscard]] virtual Result<std::vector<EntrySummary>> list() const = 0;

    // Reads and verifies one listed entry, for `kiln ls` and `kiln show`: the key document comes with it.
    // `damaged` when it does not verify, `not_found` when it has gone since. Moves nothing and counts
    // nothing.
    [[nodiscard]] virtual Result<StoredEntry> read(const EntrySummary& summary) const = 0;

    // Blocks until no other thread or process holds this key's lock; never ask twice in one thread. The
    // caller looks again with get() before it builds: one compile per key follows from that. Where the file
    // system knows no locks, returns an empty lock at once (two compiles rather than an endless wait).
    [[nodiscard]] virtual Result<std::unique_ptr<BuildLock>> lock(const Key& key) = 0;

    [[nodiscard]] virtual StoreStatistics statistics() const = 0;
    [[nodiscard]] virtual const std::filesystem::path& folder() const = 0;  // absolute
};

// KILN_CACHE_DIR is the caller's to read; this is the default: $XDG_CACHE_HOME/kiln, else $HOME/.cache/kiln.
// A relative path in either is ignored, as the XDG specification asks. `environment` when none is left.
[[nodiscard]] Result<std::filesystem::path> default_store_folder();

}  // namespace kiln::cache
