// The 1x32 quantiser to fp8 with an e8m0 scale, rounded up: scale byte of max(|x|, 1e-10) / 448, q = e4m3(x /
// 2^(byte - 127)). A lane holds 8 elements, and 4 neighbouring lanes a group.
//
// A group with an infinity or a NaN gets scale 255, which is NaN: its bytes mean nothing.
#pragma once

#include "device/gfx950/cross_lane.h"
#include "device/gfx950/vectors.h"
#include "device/macros.h"
#include "device/quantise.h"
#include "device/types.h"

namespace kiln::device {

inline constexpr int kMxGroup = 32;
inline constexpr int kMxLaneElements = 8;

#if defined(__HIP__)
// The scale byte of a lane's group; every lane of the group gets it.
KILN_DEVICE u32 mx_scale_e4m3(u32x4 packed) {
    // Without their signs, bf16 order as integers do: NaN above infinity above all else.
    const auto magnitudes = [](u32 pair) { return bits_as<u16x2>(pair & 0x7fff7fffU); };
    const u16x2 largest =
        __builtin_elementwise_max(__builtin_elementwise_max(magnitudes(packed.x), magnitudes(packed.y)),
                                  __builtin_elementwise_max(magnitudes(packed.z), magnitudes(packed.w)));
    u32 amax = largest.x > largest.y ? largest.x : largest.y;
    const auto larger = [](u32 a, u32 b) { return a > b ? a : b; };
    amax = larger(amax, swap_in_quad<1>(amax));
    amax = larger(amax, swap_in_quad<2>(amax));
    const u32 floored = larger(amax << 16, bits_as<u32>(kAmaxFloor));
    const u32 wanted = bits_as<u32>(bits_as<f32>(floored) * kInverseE4m3Max);
    constexpr u32 kMantissaBits = 23, kNanScale = 255;
    const u32 rounded_up = (wanted + ((1U << kMantissaBits) - 1)) >> kMantissaBits;
    return rounded_up < kNanScale ? rounded_up : kNanScale;
}

// A lane's elements under their scale, first in the lowest byte.
KILN_DEVICE u32x2 mx_pack_e4m3(u32x4 packed, u32 scale_byte) {
    const f32 scale = bits_as<f32>(scale_byte << 23);
    const auto four = [&](u32 first, u32 second) {
        // A conversion keeps the other half of its destination: for the first of two that is any value at
        // all.
        s16x2 anything;
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wuninitialized"
        const s16x2 half =
            __builtin_amdgcn_cvt_scalef32_pk_fp8_bf16(anything, bits_as<bf16x2>(first), scale, false);
#pragma clang diagnostic pop
        return bits_as<u32>(
            __builtin_amdgcn_cvt_scalef32_pk_fp8_bf16(half, bits_as<bf16x2>(second), scale, true));
    };
    return {four(packed.x, packed.y), four(packed.z, packed.w)};
}
#endif

}  // namespace kiln::device
