// Layouts L1 and L2: weights preshuffled (16, 16), the order in which a lane of the matrix unit reads them.
//
// Bytes [N, KB], KB bytes a row (K for fp8, K/2 for fp4), N a multiple of 16 and KB of 32:
//
//     offset(n, kb) = (n>>4)*16*KB   tiles of 16 rows
//                   + (kb>>4)*256    chunks of 16 bytes of k, all 16 rows of each
//                   + (n&15)*16      row in the tile
//                   + (kb&15)        byte in the chunk
//
// The weights of E experts, [E, N, KB], are E*N rows: since N is a multiple of 16 no tile has rows of two. L1
// has the rows as they are, L2 by RowOrder::gate_up, KB then a multiple of 64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/formats/row_order.hpp"

namespace kiln::formats {

[[nodiscard]] constexpr std::size_t l1_offset(std::size_t n, std::size_t kb, std::size_t row_bytes) {
    return (n >> 4) * 16 * row_bytes + (kb >> 4) * 256 + (n & 15) * 16 + (kb & 15);
}

// Row-major [rows, row_bytes] to L1 or L2, and back. Requires rows % 16 == 0 and whole experts, row_bytes %
// 32 == 0, spans of exactly that size that do not overlap.
void shuffle_weights(std::span<const std::uint8_t> row_major, std::size_t rows, std::size_t row_bytes,
                     RowOrder order, std::span<std::uint8_t> shuffled);
void unshuffle_weights(std::span<const std::uint8_t> shuffled, std::size_t rows, std::size_t row_bytes,
                       RowOrder order, std::span<std::uint8_t> row_major);

}  // namespace kiln::formats
