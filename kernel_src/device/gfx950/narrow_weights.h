// Preshuffled fp4 and fp8 weights as bf16 operands of the matrix unit.
//
// A wave reads 16 bytes a lane of a tile of 16 rows, and takes them in steps of eight: a step is one operand
// A of the 16x16x32 instruction. The lanes' k then lie apart, and B has to be read at the same ones.
#pragma once

#include "device/gfx950/convert.h"
#include "device/gfx950/fragment.h"
#include "device/gfx950/vectors.h"
#include "device/layout.h"
#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

// 128 k of a row, which is what one scale of 128x128, or four of 1x32, belong to.
inline constexpr int kWeightBlock = 128;

// kBits: 4 for e2m1, 8 for e4m3.
template <int kBits>
struct NarrowWeights {
    static_assert(kBits == 4 || kBits == 8, "e2m1 or e4m3");
    static constexpr int kLoads = kBits / 4;  // of a lane in a block
    static constexpr int kSteps = kWeightBlock / Bf16Fragment::kDepth;
    static constexpr int kStepElements = Bf16Fragment::kElements;
    static constexpr int kLoadElements = PreshuffledWeights::kPieceBytes * 8 / kBits;
    static constexpr u32 kLoadBytes = kWaveLanes * PreshuffledWeights::kPieceBytes;  // of the wave
    static constexpr u32 kBlockBytes = kLoads * kLoadBytes;

    KILN_DEVICE static constexpr u32 row_bytes(u32 k) { return k * kBits / 8; }

    // Where a lane's bytes of its row begin, from the beginning of the matrix on.
    KILN_DEVICE static constexpr u64 lane_offset(u32 row, int lane, u32 k_count) {
        return PreshuffledWeights::offset(row, lane_quarter(lane) * PreshuffledWeights::kPieceBytes,
                                          row_bytes(k_count));
    }
    // The k in a block of the first element that a lane takes in a step: a part of the lane's and one of the
    // step's.
    KILN_DEVICE static constexpr int lane_k(int lane) { return lane_quarter(lane) * kLoadElements; }
    KILN_DEVICE static constexpr int step_k(int step) {
        constexpr int kStepsOfLoad = kLoadElements / kStepElements;
        return step / kStepsOfLoad * (kFragmentRows / 4 * kLoadElements)  // load
               + step % kStepsOfLoad * kStepElements;                     // in the load
    }

#if defined(__HIP__)
    // The operand of a step. `scale` has the lane's power of two as its exponent field; e4m3 has none.
    KILN_DEVICE static u32x4 operand(const u32x4 (&loads)[kLoads], int step, u32 scale) {
        if constexpr (kBits == 4) {
            const u32 codes = loads[0][step];
            return {unpack_e2m1<0>(codes, scale), unpack_e2m1<1>(codes, scale), unpack_e2m1<2>(codes, scale),
                    unpack_e2m1<3>(codes, scale)};
        } else {
            const u32 low = loads[step / 2][step % 2 * 2];
            const u32 high = loads[step / 2][step % 2 * 2 + 1];
            return {unpack_e4m3<false>(low), unpack_e4m3<true>(low), unpack_e4m3<false>(high),
                    unpack_e4m3<true>(high)};
        }
    }
#endif
};

}  // namespace kiln::device
