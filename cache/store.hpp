// A folder of cache entries: bytes under keys, published atomically and durably, verified on every read.
//
// Invariants:
//  1. A reader sees no entry or a whole one: publication is temporary file, fsync, rename, fsync of the folder.
//  2. What get() returns was stored under exactly this key: the key document in the entry is compared, and every byte is
//     covered by a digest that was checked.
//  3. A damaged entry is a miss: it is reported, moved to the folder "damaged", and can be put again.
//  4. Readers take no lock. Nothing in an entry or a file name depends on where the store lies.
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

struct StoreStatistics {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;   // damaged entries included
    std::uint64_t damaged = 0;
    std::uint64_t puts = 0;
};

struct EntrySummary {
    Digest key;
    std::filesystem::path path;
    std::uint64_t bytes = 0;  // of the file
};

// Held while one process or thread builds the entry of one key. Released by the destructor, and by the kernel when the
// owner dies.
class BuildLock {
  public:
    virtual ~BuildLock() = default;
};

// Thread safe; any number of processes may share the folder.
class Store {
  public:
    // Creates the folder and its parents (0700) where they do not exist. io or environment when that is not possible.
    [[nodiscard]] static Result<std::unique_ptr<Store>> open(const std::filesystem::path& folder);
    virtual ~Store() = default;

    // The entry, or nothing. An error only when the operating system refuses to read what is there.
    [[nodiscard]] virtual Result<std::optional<Entry>> get(const Key& key) = 0;
    [[nodiscard]] virtual Result<void> put(const Key& key, const Entry& entry) = 0;
    // True when there was one.
    [[nodiscard]] virtual Result<bool> erase(const Key& key) = 0;
    [[nodiscard]] virtual Result<std::vector<EntrySummary>> list() const = 0;
    // Reads and verifies one listed entry, for `kiln ls` and `kiln show`: the key document comes with it.
    [[nodiscard]] virtual Result<StoredEntry> read(const EntrySummary& summary) const = 0;

    // Blocks until no other thread or process holds this key's lock. The caller looks again with get() before it builds:
    // one compile per key follows from that. Where the file system knows no locks, returns an empty lock at once.
    [[nodiscard]] virtual Result<std::unique_ptr<BuildLock>> lock(const Key& key) = 0;

    [[nodiscard]] virtual StoreStatistics statistics() const = 0;
    [[nodiscard]] virtual const std::filesystem::path& folder() const = 0;
};

// KILN_CACHE_DIR is the caller's to read; this is the default: $XDG_CACHE_HOME/kiln, else $HOME/.cache/kiln.
// environment when neither is set to an absolute path.
[[nodiscard]] Result<std::filesystem::path> default_store_folder();

}  // namespace kiln::cache
