// One thin wrapper per matrix instruction.
#pragma once

#include "device/gfx950/vectors.h"
#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

#if defined(__HIP__)
// D = A * B + C for e4m3 A (16 x 128) and B (128 x 16), laid out as Fp8Fragment, C and D as
// AccumulatorFragment. The literal zero scales ask for the instruction without scales.
KILN_DEVICE f32x4 mfma_16x16x128_e4m3(i32x8 a, i32x8 b, f32x4 c) {
    constexpr int kE4m3 = 0;
    return __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(a, b, c, kE4m3, kE4m3, 0, 0, 0, 0);
}

// D = A * B + C for e2m1 A (16 x 128) and B (128 x 16), laid out as Fp4Fragment, C and D as
// AccumulatorFragment. Each 32 k of a row of A or a column of B are multiplied by the power of two whose e8m0
// byte is number kScaleByteA of `scale_a`, or kScaleByteB of `scale_b`.
template <int kScaleByteA, int kScaleByteB>
KILN_DEVICE f32x4 mfma_16x16x128_e2m1(u32x4 a, u32 scale_a, u32x4 b, u32 scale_b, f32x4 c) {
    constexpr int kE2m1 = 4;
    // The instruction reads four registers of each; the builtin's type has eight for the wider formats.
    const auto widened = [](u32x4 codes) {
        const i32x4 half = bits_as<i32x4>(codes);
        return __builtin_shufflevector(half, half, 0, 1, 2, 3, -1, -1, -1, -1);
    };
    return __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(widened(a), widened(b), c, kE2m1, kE2m1,
                                                            kScaleByteA, static_cast<i32>(scale_a),
                                                            kScaleByteB, static_cast<i32>(scale_b));
}

// D = A * B + C in each of 16 blocks, laid out as QuadFragment.
KILN_DEVICE f32x4 mfma_4x4x4_bf16(s16x4 a, s16x4 b, f32x4 c) {
    return __builtin_amdgcn_mfma_f32_4x4x4bf16_1k(a, b, c, 0, 0, 0);
}

// D = A * B + C for bf16 A (16 x 32) and B (32 x 16): a lane's eight elements are consecutive k of one row of
// A or column of B, laid out as Bf16Fragment; C and D as AccumulatorFragment.
KILN_DEVICE f32x4 mfma_16x16x32_bf16(u32x4 a, u32x4 b, f32x4 c) {
    return __builtin_amdgcn_mfma_f32_16x16x32_bf16(bits_as<bf16x8>(a), bits_as<bf16x8>(b), c, 0, 0, 0);
}
#endif

}  // namespace kiln::device
