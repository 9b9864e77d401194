// bf16 and e4m3 by their bits, for the host and for constant expressions.
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

}  // namespace kiln::device
