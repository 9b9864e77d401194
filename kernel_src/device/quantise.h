// The 1x128 quantiser to e4m3: s = max(|x|, 1e-10) * float(1/448), inv = 1 / s, q = e4m3(x * inv).
#pragma once

#include "device/convert.h"
#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

inline constexpr int kQuantiserGroup = 128;
inline constexpr f32 kAmaxFloor = 1e-10F;
inline constexpr f32 kInverseE4m3Max = bits_as<f32>(0x3B124925U);  // float(1/448)
static_assert(kInverseE4m3Max == 1.0F / kE4m3Max);

KILN_DEVICE constexpr f32 quantiser_scale(f32 amax) {
    return amax * kInverseE4m3Max;
}

// 1 / s, correctly rounded, from an estimate within 1 ulp of it. That holds for every s that a bf16 amax or
// its floor gives (129 mantissas; the host test tries them all with every such estimate): s and 1 / s are far
// from the denormals.
KILN_DEVICE f32 refined_reciprocal(f32 s, f32 estimate) {
    const f32 error = fused_multiply_add(-s, estimate, 1.0F);
    return fused_multiply_add(error, estimate, estimate);
}

}  // namespace kiln::device
