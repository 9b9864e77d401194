// bf16, f16 and e4m3 by instruction.
#pragma once

#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

#if defined(__CUDACC__)
// To nearest even, `low` in the lower half.
KILN_DEVICE u32 pack_bf16(f32 low, f32 high) {
    u32 packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
}

// The halves of a packed bf16 pair.
KILN_DEVICE f32 low_bf16(u32 packed) {
    return bits_as<f32>(packed << 16);
}
KILN_DEVICE f32 high_bf16(u32 packed) {
    return bits_as<f32>(packed & 0xffff0000U);
}

// The larger magnitude of each half, with a sign that means nothing. A NaN loses.
KILN_DEVICE u32 max_magnitudes(u32 a, u32 b) {
    u32 larger;
    asm("max.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(larger) : "r"(a), "r"(b));
    return larger;
}

// Four floats to e4m3, to nearest even, first in the lowest byte. Magnitudes above 448 become 448.
KILN_DEVICE u32 pack_e4m3(f32 a, f32 b, f32 c, f32 d) {
    u32 packed;
    asm("{\n\t.reg .b16 low, high;\n\t"
        "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n\t"
        "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n\t"
        "mov.b32 %0, {low, high};\n\t}"
        : "=r"(packed)
        : "f"(a), "f"(b), "f"(c), "f"(d));
    return packed;
}

struct F16Quad {
    u32 low;   // of bytes 0 and 1
    u32 high;  // of bytes 2 and 3
};

// Four e4m3 to f16, which holds each of them exactly.
KILN_DEVICE F16Quad unpack_e4m3(u32 packed) {
    F16Quad quad;
    asm("{\n\t.reg .b16 low, high;\n\t"
        "mov.b32 {low, high}, %2;\n\t"
        "cvt.rn.f16x2.e4m3x2 %0, low;\n\t"
        "cvt.rn.f16x2.e4m3x2 %1, high;\n\t}"
        : "=r"(quad.low), "=r"(quad.high)
        : "r"(packed));
    return quad;
}

// Within 1 ulp (PTX ISA, rcp.approx).
KILN_DEVICE f32 estimated_reciprocal(f32 value) {
    f32 estimate;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(estimate) : "f"(value));
    return estimate;
}
#endif

}  // namespace kiln::device
