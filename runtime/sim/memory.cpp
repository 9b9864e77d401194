#include <cstdlib>
#include <mutex>

#include <fmt/format.h>

#include "runtime/sim/machine.hpp"

namespace kiln::sim {
namespace {

// Between allocations, so that no access of one reaches another, and the alignment that is promised.
constexpr std::size_t kGap = 256;

}  // namespace

Memory::Memory(std::size_t capacity_bytes) : capacity_(capacity_bytes) {}

Memory::~Memory() {
    for (const auto& [begin, block] : blocks_) {
        std::free(block);
    }
}

Result<void*> Memory::allocate(std::size_t bytes) {
    const std::unique_lock lock(mutex_);
    if (bytes > capacity_ - used_) {
        return fail(ErrorCode::device_failed, Stage::device,
                    fmt::format("out of device memory: {} bytes asked for, {} of {} in use", bytes, used_,
                                capacity_));
    }
    const std::size_t size = (bytes + kGap - 1) / kGap * kGap + 2 * kGap;
    void* block = std::aligned_alloc(kGap, size);
    if (block == nullptr) {
        return fail(ErrorCode::device_failed, Stage::device,
                    fmt::format("the host has no {} bytes of memory", size));
    }
    void* pointer = static_cast<std::byte*>(block) + kGap;
    const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
    blocks_.emplace(begin, block);
    ranges_.emplace(begin, Range{begin, begin + bytes});
    used_ += bytes;
    return pointer;
}

Result<void> Memory::free(void* pointer) {
    if (pointer == nullptr) {
        return {};
    }
    const std::unique_lock lock(mutex_);
    const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
    const auto block = blocks_.find(begin);
    if (block == blocks_.end()) {
        return fail(ErrorCode::invalid_argument, Stage::device,
                    fmt::format("{} is not the start of an allocation of this device", pointer));
    }
    const auto range = ranges_.find(begin);
    used_ -= range->second.end - range->second.begin;
    ranges_.erase(range);
    std::free(block->second);
    blocks_.erase(block);
    return {};
}

void Memory::admit(const void* pointer, std::size_t bytes) {
    const std::unique_lock lock(mutex_);
    const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
    ranges_[begin] = {begin, begin + bytes};
}

void Memory::withdraw(const void* pointer) {
    const std::unique_lock lock(mutex_);
    const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
    if (!blocks_.contains(begin)) {
        ranges_.erase(begin);
    }
}

Memory::Range Memory::find(std::uintptr_t address) const {
    const std::shared_lock lock(mutex_);
    const auto after = ranges_.upper_bound(address);
    if (after == ranges_.begin()) {
        return {};
    }
    const Range range = std::prev(after)->second;
    return range.contains(address, 1) ? range : Range{};
}

std::size_t Memory::used_bytes() const {
    const std::shared_lock lock(mutex_);
    return used_;
}

}  // namespace kiln::sim
