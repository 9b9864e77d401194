// Layouts L3 and L4: e8m0 scales preshuffled, one for each row and 32 k.
//
// Bytes [R, C], R = E*N rows and C = K/32 columns, R padded to a multiple of 256 and C to one of 8 (Cp):
//
//     offset(r, c) = (r/32)*32*Cp + (c/8)*256 + (c%4)*64 + (r%16)*4 + ((c%8)/4)*2 + (r%32)/16
//
// A dword holds two halves of columns and two of rows for one (c%4, r%16): byte = column half * 2 + row half.
//
// L3 has the rows as they are, L4 by RowOrder::gate_up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/formats/row_order.hpp"

namespace kiln::formats {

[[nodiscard]] constexpr std::size_t l3_padded_columns(std::size_t columns) {
    return (columns + 7) / 8 * 8;
}
[[nodiscard]] constexpr std::size_t l3_bytes(std::size_t rows, std::size_t columns) {
    return (rows + 255) / 256 * 256 * l3_padded_columns(columns);
}
[[nodiscard]] constexpr std::size_t l3_offset(std::size_t r, std::size_t c, std::size_t columns) {
    return r / 32 * 32 * l3_padded_columns(columns) + c / 8 * 256 + c % 4 * 64 + r % 16 * 4 + c % 8 / 4 * 2 +
           r % 32 / 16;
}

// Row-major [rows, columns] to L3 or L4, and back; what pads is zero. Requires whole experts, spans of
// exactly rows * columns and l3_bytes(rows, columns) that do not overlap.
void shuffle_scales(std::span<const std::uint8_t> row_major, std::size_t rows, std::size_t columns,
                    RowOrder order, std::span<std::uint8_t> shuffled);
void unshuffle_scales(std::span<const std::uint8_t> shuffled, std::size_t rows, std::size_t columns,
                      RowOrder order, std::span<std::uint8_t> row_major);

}  // namespace kiln::formats
