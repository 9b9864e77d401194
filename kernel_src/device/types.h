// Types of our own, since the compiler's <stdint.h> is the host's.
#pragma once

#include "device/macros.h"

namespace kiln::device {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
using f32 = float;
// A bf16 in memory: its bits. Conversions are in convert.h.
using bf16_bits = u16;

static_assert(sizeof(u8) == 1 && sizeof(u16) == 2 && sizeof(u32) == 4 && sizeof(u64) == 8 &&
              sizeof(f32) == 4);

// The bits of one type as another. By value: a bit cast straight from an element of a vector may read its
// first one.
template <class To, class From>
KILN_HOST_DEVICE constexpr To bits_as(From value) {
    static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
    return __builtin_bit_cast(To, value);
}

// a * b + c, rounded once.
KILN_DEVICE f32 fused_multiply_add(f32 a, f32 b, f32 c) {
#if defined(__CUDACC_RTC__)
    return fmaf(a, b, c);
#else
    return __builtin_fmaf(a, b, c);
#endif
}

}  // namespace kiln::device
