// One thin wrapper per matrix instruction.
#pragma once

#include "device/macros.h"
#include "device/sm_90a/convert.h"
#include "device/sm_90a/fragment.h"
#include "device/types.h"

namespace kiln::device {

#if defined(__CUDACC__)
struct MmaSums {
    f32 value[MmaFragment::kSums];
};

// sums += A * B, f16 operands laid out as MmaFragment: `a` holds 16 rows by 16 k, first the lane's row and
// then the row 8 below, `b` 16 k by 8 columns.
KILN_DEVICE void mma_16x8x16_f16(MmaSums& sums, F16Quad a, F16Quad a_below, F16Quad b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums.value[0]), "+f"(sums.value[1]), "+f"(sums.value[2]), "+f"(sums.value[3])
        : "r"(a.low), "r"(a_below.low), "r"(a.high), "r"(a_below.high), "r"(b.low), "r"(b.high));
}

struct MatrixRows {
    u32 word[4];
};

// Four matrices of 8 rows of 16 bytes from shared memory. Lane l names where row l % 8 of matrix l / 8
// begins; of every matrix it gets word l % 4 of row l / 4.
KILN_DEVICE MatrixRows load_matrices(u32 shared_address) {
    MatrixRows rows;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(rows.word[0]), "=r"(rows.word[1]), "=r"(rows.word[2]), "=r"(rows.word[3])
                 : "r"(shared_address)
                 : "memory");
    return rows;
}
#endif

}  // namespace kiln::device
