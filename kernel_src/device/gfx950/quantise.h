// The 1x128 quantiser in the registers of a wave.
#pragma once

#include "device/gfx950/convert.h"
#include "device/gfx950/cross_lane.h"
#include "device/gfx950/fragment.h"
#include "device/gfx950/unpack.h"
#include "device/gfx950/vectors.h"
#include "device/macros.h"
#include "device/quantise.h"

namespace kiln::device {

#if defined(__HIP__)
struct Scales {
    f32 scale;
    f32 inverse;
};

// What a lane holds of a TokenSlice.
template <int kLaneRows>
struct SliceRegisters {
    u32 packed[TokenSlice<kLaneRows>::kDwords];
};

// The largest magnitude in a lane's part, not below the floor.
template <int kLaneRows>
KILN_DEVICE f32 lane_amax(const SliceRegisters<kLaneRows>& slice, const Bf16Unpacker& unpack) {
    f32 amax = kAmaxFloor;
#pragma unroll
    for (int i = 0; i < TokenSlice<kLaneRows>::kDwords; i += 2) {
        const f32x4 x = unpack(slice.packed[i], slice.packed[i + 1]);
        amax = __builtin_fmaxf(__builtin_fmaxf(amax, __builtin_fabsf(x.x)), __builtin_fabsf(x.y));
        amax = __builtin_fmaxf(__builtin_fmaxf(amax, __builtin_fabsf(x.z)), __builtin_fabsf(x.w));
    }
    return amax;
}

namespace detail {

// Non-negative floats order as their bits do.
KILN_DEVICE u32 larger(u32 a, u32 b) {
    return a > b ? a : b;
}
KILN_DEVICE u32 larger(U32Pair pair) {
    return larger(pair.first, pair.second);
}

// kCount values a lane, each to be reduced over the four quarters. One exchange serves two values, so they
// are folded into one register (quarter q ends with one value's maximum), and handed out again by unfold().
template <int kCount>
KILN_DEVICE u32 fold_quarters(const u32* values) {
    static_assert(kCount == 1 || kCount == 2 || kCount == 4);
    if constexpr (kCount == 4) {
        const u32 first = larger(swap_halves(values[0], values[1]));
        const u32 second = larger(swap_halves(values[2], values[3]));
        return larger(swap_quarters(first, second));  // {0 2 1 3}
    } else {
        const u32 first = larger(swap_halves(values[0], values[kCount - 1]));
        return larger(swap_quarters(first, first));  // {0 0 1 1}, or all 0
    }
}

template <int kCount>
KILN_DEVICE void unfold_quarters(u32 folded, u32* values) {
    if constexpr (kCount == 4) {
        const U32Pair halves = swap_quarters(folded, folded);  // {0 0 1 1}, {2 2 3 3}
        unfold_quarters<2>(halves.first, values);
        unfold_quarters<2>(halves.second, values + 2);
    } else if constexpr (kCount == 2) {
        const U32Pair pair = swap_halves(folded, folded);
        values[0] = pair.first;
        values[1] = pair.second;
    } else {
        values[0] = folded;
    }
}

template <int kSharers>
KILN_DEVICE u32 reduce_sharers(u32 value) {
    static_assert(kSharers == 1 || kSharers == 2 || kSharers == 4);
    if constexpr (kSharers >= 2) {
        value = larger(value, rotate_in_quarter<8>(value));
    }
    if constexpr (kSharers == 4) {
        value = larger(value, rotate_in_quarter<4>(value));
    }
    return value;
}

// Fetches the registers of the lane that worked on `kShare` of this token.
template <int kLaneRows, int kShare>
KILN_DEVICE void gather_share(i32x8& fragment) {
    constexpr int kRegisters = TokenSlice<kLaneRows>::kRegisters;
#pragma unroll
    for (int reg = 0; reg < kRegisters; ++reg) {
        const u32 own = static_cast<u32>(fragment[reg]);
        fragment[kShare * kRegisters + reg] = static_cast<i32>(rotate_in_quarter<kShare * kLaneRows>(own));
    }
}

}  // namespace detail

// The scales of kCount groups, from the amax of each lane's part; every lane gets those of its token.
template <int kLaneRows, int kCount>
KILN_DEVICE void quantiser_scales(const f32* lane_amaxes, Scales* scales) {
    constexpr int kTogether = kCount >= 4 ? 4 : kCount >= 2 ? 2 : 1;
    u32 values[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
        values[i] = bits_as<u32>(lane_amaxes[i]);
    }
    const u32 amax =
        detail::reduce_sharers<TokenSlice<kLaneRows>::kSharers>(detail::fold_quarters<kTogether>(values));
    const f32 scale = quantiser_scale(bits_as<f32>(amax));
    const f32 inverse = refined_reciprocal(scale, __builtin_amdgcn_rcpf(scale));  // within 1 ulp
    u32 inverses[kTogether];
    detail::unfold_quarters<kTogether>(bits_as<u32>(scale), values);
    detail::unfold_quarters<kTogether>(bits_as<u32>(inverse), inverses);
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
        scales[i] = {bits_as<f32>(values[i]), bits_as<f32>(inverses[i])};
    }
    if constexpr (kCount > kTogether) {
        quantiser_scales<kLaneRows, kCount - kTogether>(lane_amaxes + kTogether, scales + kTogether);
    }
}

// The fragment of a lane's token. Lanes past the tokens (r >= kLaneRows) get their sharers' registers in
// another order: their columns of the product mean nothing.
template <int kLaneRows>
KILN_DEVICE i32x8 quantised_fragment(const SliceRegisters<kLaneRows>& slice, const Bf16Unpacker& unpack,
                                     f32 inverse) {
    using Slice = TokenSlice<kLaneRows>;
    i32x8 fragment;
#pragma unroll
    for (int reg = 0; reg < Slice::kRegisters; ++reg) {
        const f32x4 x = unpack(slice.packed[2 * reg], slice.packed[2 * reg + 1]);
        fragment[reg] = static_cast<i32>(pack_e4m3(x * inverse));
    }
    if constexpr (Slice::kSharers >= 2) {
        detail::gather_share<kLaneRows, 1>(fragment);
    }
    if constexpr (Slice::kSharers == 4) {
        detail::gather_share<kLaneRows, 2>(fragment);
        detail::gather_share<kLaneRows, 3>(fragment);
    }
    return fragment;
}
#endif

}  // namespace kiln::device
