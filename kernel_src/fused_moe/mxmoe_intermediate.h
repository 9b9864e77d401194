// What becomes of the sums of g1: silu(gate) * up, quantised in the registers of a wave.
#pragma once

#include "constants.h"
#include "device/gfx950/cross_lane.h"
#include "device/gfx950/fragment.h"
#include "device/gfx950/mx_quantise.h"
#include "device/gfx950/vectors.h"
#include "device/macros.h"
#include "device/types.h"
#include "fused_moe/mxmoe_arguments.h"
#include "fused_moe/mxmoe_multiply.h"
#include "fused_moe/mxmoe_workspace.h"
#include "fused_moe/silu.h"

namespace kiln::mxmoe {

// Columns of I of a wave: those of a group, so that a scale is a wave's own.
inline constexpr u32 kWaveColumns = 32;
static_assert(kWaveColumns == kGroup && kWaveColumns * kColumnWaves * 2 == kTileColumns);

// First and second half of a wave's columns. Separated: a pair of tiles is gate or up. Interleaved: a pair is
// a half.
KILN_DEVICE f32x4 half_of_columns(const f32x4 (&sums)[kWeightTiles], int half) {
    const f32x4 gate = sums[kInterleaved ? 2 * half : half];
    const f32x4 up = sums[kInterleaved ? 2 * half + 1 : half + 2];
    return {fused_moe::silu_times(gate.x, up.x), fused_moe::silu_times(gate.y, up.y),
            fused_moe::silu_times(gate.z, up.z), fused_moe::silu_times(gate.w, up.w)};
}

KILN_DEVICE u32 larger(u32 a, u32 b) {
    return a > b ? a : b;
}
KILN_DEVICE u32 magnitude(f32x4 values) {
    const auto bits = [](f32 value) { return bits_as<u32>(value) & 0x7fffffffU; };
    return larger(larger(bits(values.x), bits(values.y)), larger(bits(values.z), bits(values.w)));
}
// The largest of the four lanes of a row.
KILN_DEVICE u32 largest_of_quarters(u32 value) {
    const U32Pair quarters = swap_quarters(value, value);
    const u32 of_half = larger(quarters.first, quarters.second);
    const U32Pair halves = swap_halves(of_half, of_half);
    return larger(halves.first, halves.second);
}

// A lane has the codes of columns 4q.. in its lower half, and those of 16 + 4q.. in its upper; it gets the
// codes of columns 8q.. of the same row.
KILN_DEVICE u32 consecutive_columns(u32 codes, u32 lane) {
    const U32Pair quarters = swap_quarters(codes, codes);  // of an even quarter, and of the next
    const u32 lower = __builtin_amdgcn_perm(quarters.second, quarters.first, 0x05040100U);
    const u32 upper = __builtin_amdgcn_perm(quarters.second, quarters.first, 0x07060302U);
    const U32Pair halves = swap_halves(lower, upper);
    return lane / kFragmentRows % 2 == 0 ? halves.first : halves.second;
}

// A wave's columns, from `first_column` on, of the rows of a block.
KILN_DEVICE void store_intermediate(const Arguments& arguments, const Sums& sums, u32 first_row,
                                    u32 first_column, u32 lane) {
    using Layout = RowScales<scale_tile_rows(kBlockM)>;
    constexpr u32 kRowBytes = kIntermediate / 2;
    constexpr u32 kGroups = whole_step_groups(kIntermediate);
    const u32 in_tile = static_cast<u32>(AccumulatorFragment::column(static_cast<int>(lane)));
    u8* const codes = arguments.h_q + static_cast<u64>(first_row) * kRowBytes + first_column / 2;
    u8* const scales = arguments.h_scale + static_cast<u64>(first_row) * kGroups +
                       Layout::group_offset(first_column / kGroup);
#pragma unroll
    for (int tile = 0; tile < kTokenTiles; ++tile) {
        const f32x4 lower = half_of_columns(sums[tile], 0);
        const f32x4 upper = half_of_columns(sums[tile], 1);
        const u32 scale = mx_scale_e2m1(largest_of_quarters(larger(magnitude(lower), magnitude(upper))));
        const u32 packed = consecutive_columns(mx_pack_e2m1(lower, upper, scale), lane);
        const u32 row = tile * kFragmentRows + in_tile;
        *reinterpret_cast<u32*>(codes + row * kRowBytes + lane / kFragmentRows * sizeof(u32)) = packed;
        if (lane < kFragmentRows) {
            scales[Layout::tile_offset(row, kGroups) + Layout::row_offset(row)] = static_cast<u8>(scale);
        }
    }
}

}  // namespace kiln::mxmoe
