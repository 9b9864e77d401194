#include "runtime/sim/hip/allocations.hpp"

#include <iterator>

namespace kiln::sim::hip {

void Allocations::insert(const Allocation& allocation) {
    const std::scoped_lock lock(mutex_);
    by_begin_[allocation.begin] = allocation;
}

std::optional<Allocation> Allocations::erase(const void* pointer) {
    const std::scoped_lock lock(mutex_);
    const auto found = by_begin_.find(reinterpret_cast<std::uintptr_t>(pointer));
    if (found == by_begin_.end()) {
        return std::nullopt;
    }
    const Allocation allocation = found->second;
    by_begin_.erase(found);
    return allocation;
}

std::optional<Allocation> Allocations::find(const void* pointer) const {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    const std::scoped_lock lock(mutex_);
    const auto above = by_begin_.upper_bound(address);
    if (above == by_begin_.begin()) {
        return std::nullopt;
    }
    const Allocation& candidate = std::prev(above)->second;
    if (address - candidate.begin >= candidate.bytes) {
        return std::nullopt;
    }
    return candidate;
}

Allocations::Extent Allocations::extent(const void* pointer, std::size_t bytes) const {
    const auto allocation = find(pointer);
    if (!allocation) {
        return Extent::unknown;
    }
    const auto offset = reinterpret_cast<std::uintptr_t>(pointer) - allocation->begin;
    return bytes <= allocation->bytes - offset ? Extent::inside : Extent::beyond;
}

}  // namespace kiln::sim::hip
