// bf16 and e4m3 by instruction.
#pragma once

#include "device/gfx950/vectors.h"
#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

#if defined(__HIP__)
// To nearest even, `low` in the lower half.
KILN_DEVICE u32 pack_bf16(f32 low, f32 high) {
    const bf16x2 pair = {static_cast<__bf16>(low), static_cast<__bf16>(high)};
    return bits_as<u32>(pair);
}

// Four floats to e4m3, to nearest even, first in the lowest byte. Magnitudes above 464 become NaN: the caller
// scales.
KILN_DEVICE u32 pack_e4m3(f32x4 values) {
    // A conversion keeps the other half of its destination. For the first of two that is any value at all:
    // naming one would cost a move each.
    i32 anything;
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wuninitialized"
    const i32 half = __builtin_amdgcn_cvt_pk_fp8_f32(values.x, values.y, anything, false);
#pragma clang diagnostic pop
    return static_cast<u32>(__builtin_amdgcn_cvt_pk_fp8_f32(values.z, values.w, half, true));
}

// Two of the eight e2m1 in `codes`, the pair in byte kPair, times the power of two that `scale` has as its
// exponent field: exact within the range of bf16. Sign and mantissa of `scale` do not matter.
template <int kPair>
KILN_DEVICE u32 unpack_e2m1(u32 codes, u32 scale) {
    return bits_as<u32>(__builtin_amdgcn_cvt_scalef32_pk_bf16_fp4(codes, bits_as<f32>(scale), kPair));
}

// Two of the four e4m3 in `codes`, exactly.
template <bool kHighHalf>
KILN_DEVICE u32 unpack_e4m3(u32 codes) {
    return bits_as<u32>(__builtin_amdgcn_cvt_scalef32_pk_bf16_fp8(codes, 1.0F, kHighHalf));
}
#endif

}  // namespace kiln::device
