// Products of packed pairs.
#pragma once

#include "device/gfx950/vectors.h"
#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

#if defined(__HIP__)
// a0 * b0 + a1 * b1 + c for bf16 pairs, in float32; denormals count as zero on the way in and out. What the
// builtin takes a pair as differs between releases of the compiler.
KILN_DEVICE f32 dot2_bf16(u32 a, u32 b, f32 c) {
    return __builtin_amdgcn_fdot2_f32_bf16(bits_as<bf16x2>(a), bits_as<bf16x2>(b), c, false);
}

// The same over 16 bytes of each, first pair first.
KILN_DEVICE f32 dot8_bf16(u32x4 a, u32x4 b, f32 c) {
    c = dot2_bf16(a.x, b.x, c);
    c = dot2_bf16(a.y, b.y, c);
    c = dot2_bf16(a.z, b.z, c);
    return dot2_bf16(a.w, b.w, c);
}
#endif

}  // namespace kiln::device
