// A step of the rows of a block, 256 k of each as e2m1, as it lies in LDS: for host and device.
#pragma once

#include "device/gfx950/fragment.h"
#include "device/macros.h"
#include "device/types.h"
#include "fused_moe/mxmoe_workspace.h"

namespace kiln::mxmoe {

using namespace kiln::device;

// Rows of eight pieces of 16 bytes. A piece lies at its number xor half the row's: the lanes that the LDS
// serves together, 16 of which read 16 bytes each in the order {0-3, 12-15, 20-27} and the rest of 0-31, then
// ask all banks, once each.
struct TileLayout {
    static constexpr u32 kPieceBytes = 16;
    static constexpr u32 kRowPieces = kStepBytes / kPieceBytes;

    KILN_DEVICE static constexpr u32 offset(u32 row, u32 piece) {
        return row * kStepBytes + (piece ^ row / 2 % kRowPieces) * kPieceBytes;
    }
    // Where a lane's operand of a chunk of a tile of 16 rows lies. The tile adds a constant.
    KILN_DEVICE static constexpr u32 operand_offset(u32 lane, u32 chunk) {
        const u32 quarter = static_cast<u32>(lane_quarter(static_cast<int>(lane)));
        return offset(static_cast<u32>(Fp4Fragment::row(static_cast<int>(lane))), chunk * 4 + quarter);
    }
    static constexpr u32 kOperandTileBytes = kFragmentRows * kStepBytes;
};

}  // namespace kiln::mxmoe
