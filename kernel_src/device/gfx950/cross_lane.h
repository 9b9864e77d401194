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

// Lane l of each group of four gets lane l ^ kMask of it.
template <int kMask>
KILN_DEVICE u32 swap_in_quad(u32 value) {
    static_assert(kMask >= 1 && kMask <= 3);
    constexpr int kQuadPermutation = kMask | (1 ^ kMask) << 2 | (2 ^ kMask) << 4 | (3 ^ kMask) << 6;
    return static_cast<u32>(
        __builtin_amdgcn_mov_dpp(static_cast<i32>(value), kQuadPermutation, 0xf, 0xf, true));
}

// The value of any lane, and a value sent to any lane; the senders must reach every lane.
KILN_DEVICE u32 from_lane(u32 value, u32 lane) {
    return static_cast<u32>(
        __builtin_amdgcn_ds_bpermute(static_cast<i32>(4 * lane), static_cast<i32>(value)));
}
KILN_DEVICE u32 to_lane(u32 value, u32 lane) {
    return static_cast<u32>(__builtin_amdgcn_ds_permute(static_cast<i32>(4 * lane), static_cast<i32>(value)));
}
// The same where `lane` is that of all: a scalar.
KILN_DEVICE u32 read_lane(u32 value, u32 lane) {
    return static_cast<u32>(__builtin_amdgcn_readlane(static_cast<i32>(value), static_cast<i32>(lane)));
}

// A bit for each lane in which `condition` holds.
KILN_DEVICE u64 lanes_where(bool condition) {
    return __builtin_amdgcn_ballot_w64(condition);
}
// How many lanes of the set lie below this one.
KILN_DEVICE u32 count_below(u64 lanes) {
    return __builtin_amdgcn_mbcnt_hi(static_cast<u32>(lanes >> 32),
                                     __builtin_amdgcn_mbcnt_lo(static_cast<u32>(lanes), 0));
}
KILN_DEVICE u32 count_lanes(u64 lanes) {
    return static_cast<u32>(__builtin_popcountll(lanes));
}
// The lanes among `among` with this lane's key, of which only the lowest kBits count.
template <int kBits>
KILN_DEVICE u64 lanes_of_same(u32 key, u64 among) {
    u64 same = among;
#pragma unroll
    for (int bit = 0; bit < kBits; ++bit) {
        const bool is_set = (key >> bit & 1U) != 0;
        const u64 set = lanes_where(is_set);
        same &= is_set ? set : ~set;
    }
    return same;
}

namespace detail {
// Lanes that get nothing get 0.
template <int kControl, int kRows>
KILN_DEVICE u32 moved(u32 value) {
    return static_cast<u32>(
        __builtin_amdgcn_update_dpp(0, static_cast<i32>(value), kControl, kRows, 0xf, false));
}
}  // namespace detail

// The sum of this lane's value and those of all lanes below. All lanes must take part.
KILN_DEVICE u32 running_sum(u32 value) {
    constexpr int kRowShiftRight = 0x110, kRowBroadcast15 = 0x142, kRowBroadcast31 = 0x143;
    constexpr int kAllRows = 0xf, kOddRows = 0xa, kUpperRows = 0xc;
    value += detail::moved<kRowShiftRight + 1, kAllRows>(value);
    value += detail::moved<kRowShiftRight + 2, kAllRows>(value);
    value += detail::moved<kRowShiftRight + 4, kAllRows>(value);
    value += detail::moved<kRowShiftRight + 8, kAllRows>(value);
    value += detail::moved<kRowBroadcast15, kOddRows>(value);
    value += detail::moved<kRowBroadcast31, kUpperRows>(value);
    return value;
}

// The value of the first lane, known to be that of all.
KILN_DEVICE u32 uniform(u32 value) {
    return static_cast<u32>(__builtin_amdgcn_readfirstlane(static_cast<i32>(value)));
}
KILN_DEVICE f32 uniform(f32 value) {
    return bits_as<f32>(uniform(bits_as<u32>(value)));
}
#endif

}  // namespace kiln::device
