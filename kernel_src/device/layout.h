// Memory layouts of operands, as byte offsets.
#pragma once

#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

// L1: weights [N, row_bytes] preshuffled (16, 16). Tiles of 16 rows; in a tile, pieces of 16 bytes of k; in a
// piece, the 16 rows. N is a multiple of 16, row_bytes of 32.
struct PreshuffledWeights {
    static constexpr int kTileRows = 16;
    static constexpr int kPieceBytes = 16;

    KILN_DEVICE static constexpr u64 offset(u32 n, u32 k_byte, u32 row_bytes) {
        return static_cast<u64>(n / kTileRows) * kTileRows * row_bytes             // tile
               + static_cast<u64>(k_byte / kPieceBytes) * kTileRows * kPieceBytes  // piece
               + (n % kTileRows) * kPieceBytes                                     // row in the piece
               + k_byte % kPieceBytes;                                             // byte in the row
    }
    KILN_DEVICE static constexpr u64 tile_offset(u32 tile, u32 row_bytes) {
        return static_cast<u64>(tile) * kTileRows * row_bytes;
    }
};

// L3: a scale byte for each row and group of a matrix, preshuffled: a dword holds two groups (4 apart) of two
// rows (16 apart). A row's part and a group's are added up; `groups` is a multiple of 8.
struct PreshuffledScales {
    static constexpr u32 kTileRows = 32;
    static constexpr u32 kTileGroups = 8;

    KILN_DEVICE static constexpr u64 row_offset(u32 row, u32 groups) {
        return static_cast<u64>(row / kTileRows) * kTileRows * groups  // tile of rows
               + row % 16 * 4                                          // dword
               + row % kTileRows / 16;                                 // byte in a half of the dword
    }
    KILN_DEVICE static constexpr u32 group_offset(u32 group) {
        return group / kTileGroups * (kTileRows * kTileGroups)  // tile
               + group % 4 * 64                                 // dwords of 16 rows
               + group % kTileGroups / 4 * 2;                   // half of the dword
    }
};

}  // namespace kiln::device
