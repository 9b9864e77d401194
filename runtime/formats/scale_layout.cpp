#include "runtime/formats/scale_layout.hpp"

#include <algorithm>
#include <cassert>

namespace kiln::formats {

namespace {

// For every scale: where it is in row-major order, and where when shuffled.
template <class Move>
void for_each_scale(std::size_t rows, std::size_t columns, RowOrder order, const Move& move) {
    assert(order.fits(rows));
    for (std::size_t r = 0; r < rows; ++r) {
        const std::size_t placed = order.place(r);
        for (std::size_t c = 0; c < columns; ++c) {
            move(r * columns + c, l3_offset(placed, c, columns));
        }
    }
}

}  // namespace

void shuffle_scales(std::span<const std::uint8_t> row_major, std::size_t rows, std::size_t columns,
                    RowOrder order, std::span<std::uint8_t> shuffled) {
    assert(row_major.size() == rows * columns && shuffled.size() == l3_bytes(rows, columns));
    std::ranges::fill(shuffled, std::uint8_t{0});
    for_each_scale(rows, columns, order,
                   [&](std::size_t plain, std::size_t placed) { shuffled[placed] = row_major[plain]; });
}

void unshuffle_scales(std::span<const std::uint8_t> shuffled, std::size_t rows, std::size_t columns,
                      RowOrder order, std::span<std::uint8_t> row_major) {
    assert(row_major.size() == rows * columns && shuffled.size() == l3_bytes(rows, columns));
    for_each_scale(rows, columns, order,
                   [&](std::size_t plain, std::size_t placed) { row_major[plain] = shuffled[placed]; });
}

}  // namespace kiln::formats
