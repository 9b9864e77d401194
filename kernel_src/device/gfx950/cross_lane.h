// Moves between lanes of a wave. A quarter is 16 consecutive lanes.
#pragma once

#include "device/gfx950/vectors.h"
#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

#if defined(__HIP__)
struct U32Pair {
    u32 first;
    u32 second;
};

// Quarters of the operands, a and b: {a0 a1 b0 b1}, {a2 a3 b2 b3}.
KILN_DEVICE U32Pair swap_halves(u32 a, u32 b) {
    const auto swapped = __builtin_amdgcn_permlane32_swap(a, b, false, false);
    return {swapped[0], swapped[1]};
}

// {a0 b0 a2 b2}, {a1 b1 a3 b3}.
KILN_DEVICE U32Pair swap_quarters(u32 a, u32 b) {
    const auto swapped = __builtin_amdgcn_permlane16_swap(a, b, false, false);
    return {swapped[0], swapped[1]};
}

// Lane r of each quarter gets lane (r + kDistance) % 16.
template <int kDistance>
KILN_DEVICE u32 rotate_in_quarter(u32 value) {
    static_assert(kDistance > 0 && kDistance < 16);
    constexpr int kRowRotateRight = 0x120;
    return static_cast<u32>(
        __builtin_amdgcn_mov_dpp(static_cast<i32>(value), kRowRotateRight + 16 - kDistance, 0xf, 0xf, true));
}

// The value of the first lane, known to be that of all.
KILN_DEVICE u32 uniform(u32 value) {
    return static_cast<u32>(__builtin_amdgcn_readfirstlane(static_cast<i32>(value)));
}
#endif

}  // namespace kiln::device
