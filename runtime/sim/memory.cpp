#include "runtime/sim/memory.hpp"

#include <sys/mman.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include <fmt/format.h>

namespace kiln::sim {
namespace {

// Between allocations, so that no access of one reaches another, and the alignment that is promised.
constexpr std::size_t kGap = 256;
constexpr std::size_t kPage = 4096;

// Of freed memory addresses are kept, not pages.
constexpr std::size_t kMaxFreed = 4096;
constexpr std::size_t kMaxFreedBytes = std::size_t{64} << 30;

void give_pages_back(void* base, std::size_t size) {
    const auto begin = (reinterpret_cast<std::uintptr_t>(base) + kPage - 1) / kPage * kPage;
    const auto end = (reinterpret_cast<std::uintptr_t>(base) + size) / kPage * kPage;
    if (end > begin) {
        ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }
}

std::size_t count_unwritten(const std::uint8_t* written, std::size_t bytes) {
    return static_cast<std::size_t>(std::count(written, written + bytes, std::uint8_t{0}));
}

std::uintptr_t address_of(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
}

}  // namespace

Memory::Memory(std::size_t capacity_bytes, Checks checks) : capacity_(capacity_bytes), checks_(checks) {}

Memory::~Memory() {
    for (const auto* blocks : {&blocks_, &freed_}) {
        for (const auto& [begin, block] : *blocks) {
            std::free(block.base);
        }
    }
}

void Memory::set_checks(Checks checks) {
    const std::unique_lock lock(mutex_);
    checks_ = checks;
    for (auto& [begin, block] : blocks_) {
        if (!checks.uninitialised) {
            block.range.written = nullptr;
            block.missing = 0;
        }
    }
    generation_.fetch_add(1, std::memory_order_release);
}

Result<void*> Memory::allocate(std::size_t bytes, Contents contents) {
    const std::unique_lock lock(mutex_);
    if (bytes > capacity_ - used_) {
        return fail(ErrorCode::device_failed, Stage::device,
                    fmt::format("out of device memory: {} bytes asked for, {} of {} in use", bytes, used_,
                                capacity_));
    }
    Block block;
    block.size = (bytes + kGap - 1) / kGap * kGap + 2 * kGap;
    do {
        block.base = std::aligned_alloc(kGap, block.size);
    } while (block.base == nullptr && release_oldest());
    const bool mapped = checks_.uninitialised && contents == Contents::unwritten && bytes != 0;
    if (mapped) {
        block.map = Pages::map(bytes);
        block.missing = bytes;
    }
    if (block.base == nullptr || (mapped && block.map.data() == nullptr)) {
        std::free(block.base);
        return fail(ErrorCode::device_failed, Stage::device,
                    fmt::format("the host has no {} bytes of memory", block.size));
    }
    void* pointer = static_cast<std::byte*>(block.base) + kGap;
    const std::uintptr_t begin = address_of(pointer);
    block.range = {begin, begin + bytes, static_cast<std::uint8_t*>(block.map.data())};
    blocks_.insert_or_assign(begin, std::move(block));
    used_ += bytes;
    return pointer;
}

Result<void> Memory::free(void* pointer) {
    if (pointer == nullptr) {
        return {};
    }
    const std::unique_lock lock(mutex_);
    const auto found = blocks_.find(address_of(pointer));
    if (found == blocks_.end() || found->second.base == nullptr) {
        return fail(ErrorCode::invalid_argument, Stage::device,
                    fmt::format("{} is not the start of an allocation of this device{}", pointer,
                                freed_.contains(address_of(pointer)) ? ": it was freed" : ""));
    }
    Block block = std::move(found->second);
    blocks_.erase(found);
    used_ -= block.range.end - block.range.begin;
    generation_.fetch_add(1, std::memory_order_release);
    if (checks_.freed) {
        set_aside(std::move(block));
    } else {
        std::free(block.base);
    }
    return {};
}

void Memory::set_aside(Block block) {
    give_pages_back(block.base, block.size);
    block.range.written = nullptr;
    block.map = {};
    const std::uintptr_t begin = block.range.begin;
    freed_bytes_ += block.size;
    freed_.insert_or_assign(begin, std::move(block));
    freed_order_.push_back(begin);
    while (freed_order_.size() > kMaxFreed || freed_bytes_ > kMaxFreedBytes) {
        release_oldest();
    }
}

bool Memory::release_oldest() {
    if (freed_order_.empty()) {
        return false;
    }
    const auto oldest = freed_.find(freed_order_.front());
    freed_order_.pop_front();
    freed_bytes_ -= oldest->second.size;
    std::free(oldest->second.base);
    freed_.erase(oldest);
    return true;
}

void Memory::admit(const void* pointer, std::size_t bytes) {
    const std::unique_lock lock(mutex_);
    Block block;
    block.range = {address_of(pointer), address_of(pointer) + bytes};
    blocks_.insert_or_assign(block.range.begin, std::move(block));
}

void Memory::withdraw(const void* pointer) {
    const std::unique_lock lock(mutex_);
    const auto found = blocks_.find(address_of(pointer));
    if (found != blocks_.end() && found->second.base == nullptr) {
        blocks_.erase(found);
        generation_.fetch_add(1, std::memory_order_release);
    }
}

Memory::Range Memory::find(std::uintptr_t address) const {
    const std::shared_lock lock(mutex_);
    const auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin()) {
        return {};
    }
    const Range& range = std::prev(after)->second.range;
    return range.contains(address, 1) ? range : Range{};
}

std::optional<Memory::Range> Memory::find_freed(std::uintptr_t address) const {
    const std::shared_lock lock(mutex_);
    const auto after = freed_.upper_bound(address);
    if (after == freed_.begin()) {
        return std::nullopt;
    }
    const Range& range = std::prev(after)->second.range;
    return range.contains(address, 1) ? std::optional(range) : std::nullopt;
}

Memory::Block* Memory::block_of(std::uintptr_t address) {
    const auto after = blocks_.upper_bound(address);
    if (after == blocks_.begin()) {
        return nullptr;
    }
    Block& block = std::prev(after)->second;
    return block.base != nullptr && block.range.contains(address, 1) ? &block : nullptr;
}

void Memory::note_written(const void* pointer, std::size_t bytes) {
    const std::unique_lock lock(mutex_);
    Block* const block = bytes != 0 ? block_of(address_of(pointer)) : nullptr;
    if (block == nullptr || block->range.written == nullptr) {
        return;
    }
    bytes = std::min(bytes, block->range.end - address_of(pointer));
    if (bytes == block->range.end - block->range.begin) {  // of the whole no page of the map is needed
        block->missing = 0;
        generation_.fetch_add(1, std::memory_order_release);
    } else {
        std::uint8_t* const written = block->range.written_at(address_of(pointer));
        block->missing -= count_unwritten(written, bytes);
        std::memset(written, 0xff, bytes);
    }
    if (block->missing == 0) {
        block->range.written = nullptr;
    }
}

void Memory::forget_written(const void* pointer, std::size_t bytes) {
    const std::unique_lock lock(mutex_);
    Block* const block = checks_.uninitialised && bytes != 0 ? block_of(address_of(pointer)) : nullptr;
    std::uint8_t* const written = block != nullptr ? map_of(*block) : nullptr;
    if (written == nullptr) {
        return;
    }
    bytes = std::min(bytes, block->range.end - address_of(pointer));
    std::uint8_t* const first = block->range.written_at(address_of(pointer));
    block->missing += bytes - count_unwritten(first, bytes);
    std::memset(first, 0, bytes);
}

void Memory::note_copied(const void* pointer, const Memory* from, const void* source, std::size_t bytes) {
    const Range range = from != nullptr ? from->find(address_of(source)) : Range{};
    if (range.written == nullptr || !range.contains(address_of(source), bytes)) {
        note_written(pointer, bytes);
        return;
    }
    const std::unique_lock lock(mutex_);
    Block* const block = checks_.uninitialised && bytes != 0 ? block_of(address_of(pointer)) : nullptr;
    std::uint8_t* const written = block != nullptr ? map_of(*block) : nullptr;
    if (written == nullptr || !block->range.contains(address_of(pointer), bytes)) {
        return;
    }
    std::uint8_t* const first = block->range.written_at(address_of(pointer));
    block->missing -= count_unwritten(first, bytes);
    std::memmove(first, range.written_at(address_of(source)), bytes);
    block->missing += count_unwritten(first, bytes);
}

std::uint8_t* Memory::map_of(Block& block) {
    if (block.range.written != nullptr) {
        return block.range.written;
    }
    const std::size_t bytes = block.range.end - block.range.begin;
    if (block.map.data() == nullptr) {
        block.map = Pages::map(bytes);
    }
    auto* const written = static_cast<std::uint8_t*>(block.map.data());
    if (written != nullptr) {
        std::memset(written, 0xff, bytes);
    }
    block.range.written = written;
    return written;
}

std::size_t Memory::used_bytes() const {
    const std::shared_lock lock(mutex_);
    return used_;
}

}  // namespace kiln::sim
