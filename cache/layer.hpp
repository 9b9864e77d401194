// Cache entries to look into: the user's own store, or a read-only layer below it, a folder or a bundle.
//
// What an entry holds is run with this user's rights. So one is taken only when nobody else can have put it
// there: the folder, the two folders on the way to the entry, and the entry's file must belong to the user
// (of a layer, to root or the user) and must not be writable by group or others. That is checked on open
// descriptors, and a symbolic link inside of the folder is not followed; the folder itself may be reached
// through one. What does not pass is refused: reported once, a miss, left where it is.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "cache/entry.hpp"
#include "cache/key.hpp"

namespace kiln::cache {

// Of one object, since it was opened.
struct StoreStatistics {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;  // damaged and refused entries included
    std::uint64_t damaged = 0;
    std::uint64_t puts = 0;  // that succeeded; 0 of a layer
    std::uint64_t refused = 0;
    std::uint64_t evicted = 0;  // entries that this object's puts pushed out; 0 of a layer

    friend bool operator==(const StoreStatistics&, const StoreStatistics&) = default;
};

struct EntrySummary {
    Digest key;
    std::filesystem::path path;
    std::uint64_t bytes = 0;                          // of the file
    std::chrono::system_clock::time_point last_used;  // put or hit; store.hpp says how finely
};

// Thread safe; other processes may change the folder at any time.
class Layer {
  public:
    Layer() = default;
    Layer(const Layer&) = delete;
    Layer& operator=(const Layer&) = delete;
    virtual ~Layer() = default;

    // The entry, or nothing. An error only when the operating system refuses to read what is there.
    [[nodiscard]] virtual Result<std::optional<Entry>> get(const Key& key) = 0;

    // The same with the sections not yet decoded: for a caller that wants some of them.
    [[nodiscard]] virtual Result<std::optional<EntryFile>> find(const Key& key) = 0;

    // An entry whose key has this Key::request_digest(), the first by key, or nothing. Of a folder, reads
    // every entry once in the life of the object.
    [[nodiscard]] virtual Result<std::optional<EntryFile>> find_by_request(const Digest& request) = 0;

    // Whether an entry may be taken by its request alone although there is a compiler, which then is another
    // one: who made a bundle chose its compiler.
    [[nodiscard]] virtual bool is_bundle() const { return false; }

    // By ascending key. Files are not opened: a damaged one is listed like any other. A folder of entries
    // that can not be read is left out, with a warning; the store's own is an error.
    [[nodiscard]] virtual Result<std::vector<EntrySummary>> list() const = 0;

    // Reads and verifies one listed entry, for `kiln ls` and `kiln show`: the key document comes with it.
    // `damaged` when it does not verify, `environment` when it is refused, `not_found` when it has gone
    // since. Moves nothing and counts nothing.
    [[nodiscard]] virtual Result<StoredEntry> read(const EntrySummary& summary) const = 0;

    [[nodiscard]] virtual StoreStatistics statistics() const = 0;
    // Absolute; of a bundle, its file.
    [[nodiscard]] virtual const std::filesystem::path& folder() const = 0;
};

// Opens a folder that this process never writes to: never a file made, moved or touched there. A damaged
// entry is a miss, reported once, and stays. A relative path is taken from the working folder of now.
// `environment`, with the path, what was expected and what was found, when there is no such folder, when it
// is a file, or when somebody else could have written into it.
[[nodiscard]] Result<std::unique_ptr<Layer>> open_layer(const std::filesystem::path& folder);

}  // namespace kiln::cache
