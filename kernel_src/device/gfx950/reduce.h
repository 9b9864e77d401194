// Sums over the waves of a work-group, through LDS.
#pragma once

#include "device/gfx950/vectors.h"
#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

#if defined(__HIP__)
// Accumulator fragments of every wave, side by side: each access moves 16 bytes a lane, lanes contiguous, so
// no bank is asked twice in a phase.
template <int kWaves, int kFragments>
struct WavePartials {
    f32x4 lanes[kWaves][kFragments][kWaveLanes];

    // The first of its fragments, or all.
    template <int kCount>
    KILN_DEVICE void put(u32 wave, const f32x4 (&fragments)[kCount], u32 lane) {
        static_assert(kCount <= kFragments);
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
            lanes[wave][i][lane] = fragments[i];
        }
    }
    // After a barrier. In the order of the waves: the result does not depend on timing.
    KILN_DEVICE f32x4 sum(u32 fragment, u32 lane) const {
        f32x4 parts[kWaves];
#pragma unroll
        for (int wave = 0; wave < kWaves; ++wave) {
            parts[wave] = lanes[wave][fragment][lane];
        }
        // Ask for all of them before the first is needed.
        __builtin_amdgcn_sched_barrier(0);
        f32x4 total = parts[0];
#pragma unroll
        for (int wave = 1; wave < kWaves; ++wave) {
            total += parts[wave];
        }
        return total;
    }
};
#endif

}  // namespace kiln::device
