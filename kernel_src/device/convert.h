// bf16 and e4m3: as bits on the host and in constant expressions, by instruction on the device.
#pragma once

#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

inline constexpr f32 kE4m3Max = 448.0F;

KILN_DEVICE constexpr f32 bf16_to_f32(bf16_bits value) {
    return bits_as<f32>(static_cast<u32>(value) << 16);
}

// To nearest even; a NaN stays one.
KILN_DEVICE constexpr bf16_bits f32_to_bf16(f32 value) {
    const u32 bits = bits_as<u32>(value);
    if ((bits & 0x7fffffffU) > 0x7f800000U) {
        return static_cast<bf16_bits>((bits >> 16) | 0x40U);
    }
    return static_cast<bf16_bits>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

// OCP e4m3fn. A NaN code gives a NaN.
KILN_DEVICE constexpr f32 e4m3_to_f32(u8 code) {
    const u32 sign = static_cast<u32>(code & 0x80U) << 24;
    const u32 exponent = (code >> 3) & 0xfU;
    const u32 mantissa = code & 7U;
    if ((code & 0x7fU) == 0x7fU) {
        return bits_as<f32>(sign | 0x7fc00000U);
    }
    if (exponent == 0) {
        const f32 magnitude = static_cast<f32>(mantissa) * 0x1p-9F;
        return bits_as<f32>(sign | bits_as<u32>(magnitude));
    }
    return bits_as<f32>(sign | ((exponent + 120U) << 23) | (mantissa << 20));
}

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
