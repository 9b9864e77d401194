// A stretch of memory that a device may touch.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kiln::sim {

struct Range {
    std::uintptr_t begin = 0, end = 0;
    // 0xff for every byte that was written, else 0; null when all were. Lives as long as the range.
    std::uint8_t* written = nullptr;

    bool contains(std::uintptr_t address, std::size_t bytes) const {
        return address >= begin && bytes <= end - begin && address - begin <= end - begin - bytes;
    }
    std::uint8_t* written_at(std::uintptr_t address) const { return written + (address - begin); }
};

}  // namespace kiln::sim
