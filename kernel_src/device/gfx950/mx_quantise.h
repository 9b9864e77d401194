// The 1x32 quantisers with an e8m0 scale, rounded up: the smallest power of two that is no less than amax
// over the largest code; q = code(x / 2^(byte - 127)), to nearest even. Of bf16, a lane holds 8 elements, and
// 4 neighbouring lanes a group.
//
// To e4m3: amax is at least 1e-10. A group with an infinity or a NaN gets scale 255, which is NaN: its bytes
// mean nothing.
// To e2m1: no floor; a group of zeros gets scale 0, which is 2^-127. An infinity gets 254, and the largest
// code; a group with a NaN gets 255, and codes of 0.
#pragma once

#include "device/gfx950/cross_lane.h"
#include "device/gfx950/vectors.h"
#include "device/macros.h"
#include "device/quantise.h"
#include "device/types.h"

namespace kiln::device {

inline constexpr int kMxGroup = 32;
inline constexpr int kMxLaneElements = 8;
inline constexpr u32 kMxNanScale = 255;
inline constexpr f32 kInverseE2m1Max = bits_as<f32>(0x3E2AAAABU);  // float(1/6)
static_assert(kInverseE2m1Max == 1.0F / 6.0F);

#if defined(__HIP__)
// The bits of the largest magnitude in a lane's group, as float32; every lane of the group gets them.
KILN_DEVICE u32 mx_amax(u32x4 packed) {
    // Without their signs, bf16 order as integers do: NaN above infinity above all else.
    const auto magnitudes = [](u32 pair) { return bits_as<u16x2>(pair & 0x7fff7fffU); };
    const u16x2 largest =
        __builtin_elementwise_max(__builtin_elementwise_max(magnitudes(packed.x), magnitudes(packed.y)),
                                  __builtin_elementwise_max(magnitudes(packed.z), magnitudes(packed.w)));
    u32 amax = largest.x > largest.y ? largest.x : largest.y;
    const auto larger = [](u32 a, u32 b) { return a > b ? a : b; };
    amax = larger(amax, swap_in_quad<1>(amax));
    return larger(amax, swap_in_quad<2>(amax)) << 16;
}

// Of a float of positive sign, the exponent of the power of two that is no less: 255 for infinity, 256 for
// NaN.
KILN_DEVICE u32 rounded_up_exponent(f32 value) {
    constexpr u32 kMantissaBits = 23;
    return (bits_as<u32>(value) + ((1U << kMantissaBits) - 1)) >> kMantissaBits;
}

// The scale byte of a lane's group; every lane of the group gets it.
KILN_DEVICE u32 mx_scale_e4m3(u32x4 packed) {
    const u32 amax = mx_amax(packed);
    const u32 floored = amax > bits_as<u32>(kAmaxFloor) ? amax : bits_as<u32>(kAmaxFloor);
    const u32 exponent = rounded_up_exponent(bits_as<f32>(floored) * kInverseE4m3Max);
    return exponent < kMxNanScale ? exponent : kMxNanScale;
}
// The same of a group with that amax: bits of a float32 without its sign.
KILN_DEVICE u32 mx_scale_e2m1(u32 amax) {
    const u32 exponent = rounded_up_exponent(bits_as<f32>(amax) * kInverseE2m1Max);
    return exponent < kMxNanScale ? exponent : exponent - 1;
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

namespace detail {
// What the conversion to e2m1 takes, for which a NaN is no number to convert.
template <class Elements>
KILN_DEVICE f32 scale_of_numbers(u32 scale_byte, Elements& elements) {
    const bool is_nan = scale_byte == kMxNanScale;
    elements = is_nan ? Elements{} : elements;
    return bits_as<f32>(is_nan ? 0 : scale_byte << 23);
}
}  // namespace detail

// First in the lowest nibble.
KILN_DEVICE u32 mx_pack_e2m1(u32x4 packed, u32 scale_byte) {
    const f32 scale = detail::scale_of_numbers(scale_byte, packed);
    u32 codes;
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wuninitialized"
    codes = __builtin_amdgcn_cvt_scalef32_pk_fp4_bf16(codes, bits_as<bf16x2>(packed.x), scale, 0);
#pragma clang diagnostic pop
    codes = __builtin_amdgcn_cvt_scalef32_pk_fp4_bf16(codes, bits_as<bf16x2>(packed.y), scale, 1);
    codes = __builtin_amdgcn_cvt_scalef32_pk_fp4_bf16(codes, bits_as<bf16x2>(packed.z), scale, 2);
    return __builtin_amdgcn_cvt_scalef32_pk_fp4_bf16(codes, bits_as<bf16x2>(packed.w), scale, 3);
}
KILN_DEVICE u32 mx_pack_e2m1(f32x4 first, f32x4 second, u32 scale_byte) {
    (void)detail::scale_of_numbers(scale_byte, first);
    const f32 scale = detail::scale_of_numbers(scale_byte, second);
    u32 codes;
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wuninitialized"
    codes = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(codes, first.x, first.y, scale, 0);
#pragma clang diagnostic pop
    codes = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(codes, first.z, first.w, scale, 1);
    codes = __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(codes, second.x, second.y, scale, 2);
    return __builtin_amdgcn_cvt_scalef32_pk_fp4_f32(codes, second.z, second.w, scale, 3);
}
#endif

}  // namespace kiln::device
