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
#endif

}  // namespace kiln::device
