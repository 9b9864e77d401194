// What the program allocated, as hipPointerGetAttributes and the checks of copies see it. What kernels may
// touch is sim::Memory's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "runtime/device/hip/types.hpp"
#include "runtime/sim/memory.hpp"

namespace kiln::sim::hip {

using namespace kiln::hip;

struct Allocation {
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
    hipMemoryType type = hipMemoryTypeUnregistered;
    int device = 0;
    unsigned flags = 0;
    bool registered = false;   // hipHostRegister: the memory is the program's own
    Memory* memory = nullptr;  // of the device that it was taken from; null: of the host
};

// Thread safe.
class Allocations {
  public:
    void insert(const Allocation& allocation);
    // The one that starts at `pointer`, removed; nothing when there is none.
    std::optional<Allocation> erase(const void* pointer);
    // The one that holds `pointer`.
    [[nodiscard]] std::optional<Allocation> find(const void* pointer) const;

    enum class Extent { unknown, inside, beyond };
    // Whether [pointer, pointer + bytes) lies in one allocation, leaves it, or begins in none.
    [[nodiscard]] Extent extent(const void* pointer, std::size_t bytes) const;

  private:
    mutable std::mutex mutex_;
    std::map<std::uintptr_t, Allocation> by_begin_;  // protected by mutex_
};

}  // namespace kiln::sim::hip
