// Types of our own, since the compiler's <stdint.h> is the host's. Vectors exist on the device only.
#pragma once

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

#if defined(__HIP__)
using u32x2 = u32 __attribute__((ext_vector_type(2)));
using u32x4 = u32 __attribute__((ext_vector_type(4)));
using i32x8 = i32 __attribute__((ext_vector_type(8)));
using s16x4 = short __attribute__((ext_vector_type(4)));
using f32x2 = f32 __attribute__((ext_vector_type(2)));
using f32x4 = f32 __attribute__((ext_vector_type(4)));
using bf16x2 = __bf16 __attribute__((ext_vector_type(2)));
#endif

inline constexpr int kWaveLanes = 64;

// The bits of one type as another. By value: a bit cast straight from an element of a vector may read its
// first one.
template <class To, class From>
constexpr To bits_as(From value) {
    static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
    return __builtin_bit_cast(To, value);
}

}  // namespace kiln::device
