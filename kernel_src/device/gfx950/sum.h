// Sums over lanes.
#pragma once

#include "device/gfx950/cross_lane.h"
#include "device/gfx950/vectors.h"
#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

#if defined(__HIP__)
// Over the 16 lanes of a quarter; each of them gets the same bits.
KILN_DEVICE f32 sum_in_quarter(f32 value) {
    value += bits_as<f32>(rotate_in_quarter<8>(bits_as<u32>(value)));
    value += bits_as<f32>(rotate_in_quarter<4>(bits_as<u32>(value)));
    value += bits_as<f32>(rotate_in_quarter<2>(bits_as<u32>(value)));
    value += bits_as<f32>(rotate_in_quarter<1>(bits_as<u32>(value)));
    return value;
}

// kCount sums over all lanes of a work-group, each lane having a part of all of them. In a fixed order: the
// result does not depend on timing.
template <int kWaves, int kCount>
class LaneSums {
  public:
    // To be called by all waves. The lane i of the first wave gets sum i; the others, nothing of meaning.
    KILN_DEVICE f32 total(const f32 (&parts)[kCount], u32 thread) {
        const u32 lane = thread % kWaveLanes;
        const u32 wave = uniform(thread / kWaveLanes);
        f32 registers[kRegisters];
        fold(parts, registers);
        // Quarter q holds of register i the sum 4 * i + place(q).
        if (lane % 16 == 0) {
#pragma unroll
            for (int i = 0; i < kRegisters; ++i) {
                waves_[wave][4 * i + place(lane / 16)] = registers[i];
            }
        }
        __syncthreads();
        f32 sum = 0;
        if (wave == 0 && lane < kCount) {
            sum = waves_[0][lane];
#pragma unroll
            for (int other = 1; other < kWaves; ++other) {
                sum += waves_[other][lane];
            }
        }
        return sum;
    }

  private:
    static constexpr int kPairs = (kCount + 1) / 2;
    static constexpr int kRegisters = (kPairs + 1) / 2;

    // Exchanging two registers' halves, then quarters, and adding makes one register of two.
    KILN_DEVICE static void fold(const f32 (&parts)[kCount], f32 (&registers)[kRegisters]) {
        f32 pairs[kPairs];
#pragma unroll
        for (int i = 0; i < kPairs; ++i) {
            const f32 second = parts[2 * i + 1 < kCount ? 2 * i + 1 : 2 * i];
            pairs[i] = sum_of(swap_halves(bits_as<u32>(parts[2 * i]), bits_as<u32>(second)));
        }
#pragma unroll
        for (int i = 0; i < kRegisters; ++i) {
            const f32 second = pairs[2 * i + 1 < kPairs ? 2 * i + 1 : 2 * i];
            registers[i] =
                sum_in_quarter(sum_of(swap_quarters(bits_as<u32>(pairs[2 * i]), bits_as<u32>(second))));
        }
    }
    KILN_DEVICE static f32 sum_of(U32Pair pair) {
        return bits_as<f32>(pair.first) + bits_as<f32>(pair.second);
    }
    KILN_DEVICE static u32 place(u32 quarter) {
        return quarter % 2 * 2 + quarter / 2;
    }

    f32 waves_[kWaves][4 * kRegisters];
};
#endif

}  // namespace kiln::device
