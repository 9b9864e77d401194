#include "runtime/formats/weight_layout.hpp"

#include <algorithm>
#include <cassert>

namespace kiln::formats {

namespace {
constexpr std::size_t kChunk = 16;  // bytes of k that stay together
}

std::vector<std::uint8_t> shuffle_l1(std::span<const std::uint8_t> row_major, std::size_t rows,
                                     std::size_t row_bytes) {
    assert(rows % 16 == 0 && row_bytes % 32 == 0 && row_major.size() == rows * row_bytes);
    std::vector<std::uint8_t> shuffled(row_major.size());
    for (std::size_t n = 0; n < rows; ++n) {
        for (std::size_t kb = 0; kb < row_bytes; kb += kChunk) {
            std::copy_n(&row_major[n * row_bytes + kb], kChunk, &shuffled[l1_offset(n, kb, row_bytes)]);
        }
    }
    return shuffled;
}

std::vector<std::uint8_t> unshuffle_l1(std::span<const std::uint8_t> shuffled, std::size_t rows,
                                       std::size_t row_bytes) {
    assert(rows % 16 == 0 && row_bytes % 32 == 0 && shuffled.size() == rows * row_bytes);
    std::vector<std::uint8_t> row_major(shuffled.size());
    for (std::size_t n = 0; n < rows; ++n) {
        for (std::size_t kb = 0; kb < row_bytes; kb += kChunk) {
            std::copy_n(&shuffled[l1_offset(n, kb, row_bytes)], kChunk, &row_major[n * row_bytes + kb]);
        }
    }
    return row_major;
}

}  // namespace kiln::formats
