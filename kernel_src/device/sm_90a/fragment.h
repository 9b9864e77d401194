// Which lane holds what of the operands of mma.m16n8k16: A is 16 rows by 16 k, B is 16 k by 8 columns, D is
// 16 rows by 8 columns. A warp's lane is (group g = lane / 4, t = lane % 4). From the PTX ISA, "Matrix
// Fragments for mma.m16n8k16".
#pragma once

#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

inline constexpr int kWarpLanes = 32;

// The products of one instruction may be summed in any order of k, as long as A and B agree. So a lane's four
// k, of A and B alike, are four neighbours, 4t .. 4t + 3: one 32-bit word of e4m3, as ldmatrix hands it out.
struct MmaFragment {
    static constexpr int kRows = 16;    // of A and D
    static constexpr int kColumns = 8;  // of B and D
    static constexpr int kDepth = 16;   // k of one instruction
    static constexpr int kSums = 4;     // registers of D in a lane

    // The row of A is this, and 8 more; also the column of B.
    KILN_DEVICE static constexpr u32 outer(u32 lane) { return lane / 4; }
    // Of a register of D.
    KILN_DEVICE static constexpr u32 row(u32 lane, u32 sum) { return lane / 4 + 8 * (sum / 2); }
    KILN_DEVICE static constexpr u32 column(u32 lane, u32 sum) { return 2 * (lane % 4) + sum % 2; }
};

}  // namespace kiln::device
