// What one device may touch, and what is known of it: which bytes were written, what was freed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>

#include "base/error.hpp"
#include "runtime/sim/checks.hpp"
#include "runtime/sim/pages.hpp"
#include "runtime/sim/range.hpp"

namespace kiln::sim {

// Thread safe.
class Memory {
  public:
    // Of `checks` only `uninitialised` and `freed` are this class's.
    explicit Memory(std::size_t capacity_bytes, Checks checks = {});
    ~Memory();
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    // From now on. What is there when `uninitialised` goes off counts as written for good.
    void set_checks(Checks checks);

    // Whether what is in a new allocation counts as written: for callers that fill it through the pointer.
    enum class Contents { written, unwritten };
    // Aligned to 256 bytes, with unmapped or poisoned surroundings: the bytes next to an allocation belong to
    // no other. device_failed when the capacity is used up.
    [[nodiscard]] Result<void*> allocate(std::size_t bytes, Contents contents = Contents::written);
    // invalid_argument when `pointer` is not the start of a live allocation. Null is fine.
    [[nodiscard]] Result<void> free(void* pointer);
    // Lets the device touch memory of the host's (pinned memory, a module's segments) until withdraw(). It
    // counts as written.
    void admit(const void* pointer, std::size_t bytes);
    void withdraw(const void* pointer);

    using Range = sim::Range;
    // The live range that holds `address`; an empty one when there is none.
    [[nodiscard]] Range find(std::uintptr_t address) const;
    // The range that held `address` before it was freed, while that is remembered.
    [[nodiscard]] std::optional<Range> find_freed(std::uintptr_t address) const;
    // Changes when a range ends or is wholly written: what find() said before may be over.
    [[nodiscard]] std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

    // What the host did to bytes of an allocation; to any others nothing.
    void note_written(const void* pointer, std::size_t bytes);
    // Makes them count as never written.
    void forget_written(const void* pointer, std::size_t bytes);
    // They were copied from `source`, memory of `from`, or of the host when it is null.
    void note_copied(const void* pointer, const Memory* from, const void* source, std::size_t bytes);

    [[nodiscard]] std::size_t used_bytes() const;
    [[nodiscard]] std::size_t capacity_bytes() const { return capacity_; }

  private:
    struct Block {
        Range range;
        void* base = nullptr;     // what std::free() takes; null: the memory is the host's
        std::size_t size = 0;     // from base
        Pages map;                // behind Range::written, where that was ever not null
        std::size_t missing = 0;  // at least as many bytes as there are zeros in the map
    };
    [[nodiscard]] Block* block_of(std::uintptr_t address);
    // Made where there is none; null when the system has no pages.
    [[nodiscard]] std::uint8_t* map_of(Block& block);
    void set_aside(Block block);
    bool release_oldest();

    const std::size_t capacity_;
    std::atomic<std::uint64_t> generation_ = 0;

    mutable std::shared_mutex mutex_;
    Checks checks_;                           // protected by mutex_, as is all below
    std::map<std::uintptr_t, Block> blocks_;  // by begin
    std::map<std::uintptr_t, Block> freed_;   // not given to anybody yet
    std::deque<std::uintptr_t> freed_order_;  // keys of freed_, oldest first
    std::size_t used_ = 0, freed_bytes_ = 0;
};

}  // namespace kiln::sim
