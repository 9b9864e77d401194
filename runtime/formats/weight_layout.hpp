// Layout L1: weights preshuffled (16, 16), the order in which a lane of the matrix unit reads them.
//
// Bytes [N, KB] of one expert, KB bytes a row (K for fp8, K/2 for fp4), N a multiple of 16 and KB of 32:
//
//     offset(n, kb) = (n>>4)*16*KB   tiles of 16 rows
//                   + (kb>>4)*256    chunks of 16 bytes of k, all 16 rows of each
//                   + (n&15)*16      row in the tile
//                   + (kb&15)        byte in the chunk
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kiln::formats {

[[nodiscard]] constexpr std::size_t l1_offset(std::size_t n, std::size_t kb, std::size_t row_bytes) {
    return (n >> 4) * 16 * row_bytes + (kb >> 4) * 256 + (n & 15) * 16 + (kb & 15);
}

// Row-major [rows, row_bytes] to L1 and back. Requires rows % 16 == 0, row_bytes % 32 == 0 and a span of
// exactly that size.
[[nodiscard]] std::vector<std::uint8_t> shuffle_l1(std::span<const std::uint8_t> row_major, std::size_t rows,
                                                   std::size_t row_bytes);
[[nodiscard]] std::vector<std::uint8_t> unshuffle_l1(std::span<const std::uint8_t> shuffled, std::size_t rows,
                                                     std::size_t row_bytes);

}  // namespace kiln::formats
