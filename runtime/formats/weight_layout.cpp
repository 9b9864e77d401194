#include "runtime/formats/weight_layout.hpp"

#include <algorithm>
#include <cassert>

namespace kiln::formats {

namespace {

constexpr std::size_t kChunk = 16;  // bytes of k that stay together

// For every chunk: where it is in row-major order, and where when shuffled.
template <class Move>
void for_each_chunk(std::size_t rows, std::size_t row_bytes, RowOrder order, const Move& move) {
    assert(rows % 16 == 0 && row_bytes % 32 == 0 && order.fits(rows));
    for (std::size_t n = 0; n < rows; ++n) {
        const std::size_t placed = order.place(n);
        for (std::size_t kb = 0; kb < row_bytes; kb += kChunk) {
            move(n * row_bytes + kb, l1_offset(placed, kb, row_bytes));
        }
    }
}

}  // namespace

void shuffle_weights(std::span<const std::uint8_t> row_major, std::size_t rows, std::size_t row_bytes,
                     RowOrder order, std::span<std::uint8_t> shuffled) {
    assert(row_major.size() == rows * row_bytes && shuffled.size() == row_major.size());
    for_each_chunk(rows, row_bytes, order, [&](std::size_t plain, std::size_t placed) {
        std::copy_n(&row_major[plain], kChunk, &shuffled[placed]);
    });
}

void unshuffle_weights(std::span<const std::uint8_t> shuffled, std::size_t rows, std::size_t row_bytes,
                       RowOrder order, std::span<std::uint8_t> row_major) {
    assert(row_major.size() == rows * row_bytes && shuffled.size() == row_major.size());
    for_each_chunk(rows, row_bytes, order, [&](std::size_t plain, std::size_t placed) {
        std::copy_n(&shuffled[placed], kChunk, &row_major[plain]);
    });
}

}  // namespace kiln::formats
