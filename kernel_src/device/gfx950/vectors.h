// Vector types, which exist on the device only, and the width of a wave.
#pragma once

#include "device/types.h"

namespace kiln::device {

#if defined(__HIP__)
using u32x2 = u32 __attribute__((ext_vector_type(2)));
using u32x4 = u32 __attribute__((ext_vector_type(4)));
using i32x4 = i32 __attribute__((ext_vector_type(4)));
using i32x8 = i32 __attribute__((ext_vector_type(8)));
using s16x2 = short __attribute__((ext_vector_type(2)));
using u16x2 = u16 __attribute__((ext_vector_type(2)));
using s16x4 = short __attribute__((ext_vector_type(4)));
using f32x2 = f32 __attribute__((ext_vector_type(2)));
using f32x4 = f32 __attribute__((ext_vector_type(4)));
using bf16x2 = __bf16 __attribute__((ext_vector_type(2)));
using bf16x8 = __bf16 __attribute__((ext_vector_type(8)));
#endif

inline constexpr int kWaveLanes = 64;

}  // namespace kiln::device
