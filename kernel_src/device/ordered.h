// bf16 values as integers that order as a selection of the largest wants them.
#pragma once

#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

// 16 bits, larger for a larger value; equal for values that compare equal, so -0 counts as +0. Every NaN is
// kOrderedNan, below all values. kOrderedNothing is below that: no value has it.
using ordered_bf16 = u16;
inline constexpr ordered_bf16 kOrderedNothing = 0;
inline constexpr ordered_bf16 kOrderedNan = 1;

KILN_DEVICE constexpr ordered_bf16 bf16_to_ordered(bf16_bits value) {
    constexpr u32 kSign = 0x8000U;
    constexpr u32 kInfinity = 0x7f80U;
    const u32 bits = value;
    const u32 magnitude = bits & ~kSign;
    if (magnitude > kInfinity) {
        return kOrderedNan;
    }
    return static_cast<ordered_bf16>(bits > kSign ? ~bits : magnitude | kSign);
}

// A value with that order. Of kOrderedNan and kOrderedNothing a NaN.
KILN_DEVICE constexpr bf16_bits ordered_to_bf16(ordered_bf16 ordered) {
    constexpr u32 kSign = 0x8000U;
    const u32 bits = ordered;
    return static_cast<bf16_bits>(bits >= kSign ? bits ^ kSign : ~bits);
}

}  // namespace kiln::device
