// What becomes of the sums of g2: rows of 256 columns, turned around in LDS so that a wave writes whole rows.
#pragma once

#include "constants.h"
#include "device/gfx950/convert.h"
#include "device/gfx950/cross_lane.h"
#include "device/gfx950/fragment.h"
#include "device/gfx950/memory.h"
#include "device/gfx950/vectors.h"
#include "device/macros.h"
#include "device/types.h"
#include "fused_moe/mxmoe_arguments.h"
#include "fused_moe/mxmoe_multiply.h"
#include "fused_moe/mxmoe_workspace.h"

namespace kiln::mxmoe {

// How products become out: added to it, or stored for those who add them up.
inline constexpr bool kAddsUp = kMode == 0;
inline constexpr bool kCombines = kMode == 2;
static_assert(kMode >= 0 && kMode <= 2);

// Columns of H of a wave.
inline constexpr u32 kWaveRows = kTileColumns / kColumnWaves;

// Rows of bf16 in LDS. Eight bytes more than they have: the 16 lanes that store eight bytes each at once, one
// row after the other, then ask all 32 banks.
struct OutputTile {
    static constexpr u32 kRowBytes = kTileColumns * sizeof(bf16_bits) + 8;
    u8 rows[kBlockM * kRowBytes] __attribute__((aligned(16)));
};

// A wave's columns of all rows of the block. `scales(tile)` is what a lane's row of a tile is multiplied by.
template <class Scale>
KILN_DEVICE void put_columns(OutputTile& output, const Sums& sums, const Scale& scale, const WavePart& part,
                             u32 lane) {
#pragma unroll
    for (int tile = 0; tile < kTokenTiles; ++tile) {
        const u32 row = (part.first_tile + tile) * kFragmentRows +
                        static_cast<u32>(AccumulatorFragment::column(static_cast<int>(lane)));
        const f32 factor = scale(tile);
#pragma unroll
        for (int f = 0; f < kWeightTiles; ++f) {
            const u32 column = part.column_wave * kWaveRows + f * kFragmentRows +
                               static_cast<u32>(AccumulatorFragment::row(static_cast<int>(lane), 0));
            const f32x4 values = kAddsUp ? sums[tile][f] * factor : sums[tile][f];
            *reinterpret_cast<u32x2*>(output.rows + row * OutputTile::kRowBytes +
                                      column * sizeof(bf16_bits)) =
                u32x2{pack_bf16(values.x, values.y), pack_bf16(values.z, values.w)};
        }
    }
}

// The block's rows, shared out to the waves in turn, to where they belong; those without a pair come last,
// and go nowhere. `entries` are the sort's, of rows lane and 64 + lane.
KILN_DEVICE void write_rows(const Arguments& arguments, const OutputTile& output, const u32 (&entries)[2],
                            u32 first_column, u32 wave, u32 lane) {
    for (u32 row = wave; row < kBlockM; row += kTileWaves) {
        const SortedRow sorted(
            read_lane(entries[kBlockM > kWaveLanes ? row / kWaveLanes : 0], row % kWaveLanes));
        if (sorted.token() >= arguments.m) {
            return;
        }
        const u8* const values = output.rows + row * OutputTile::kRowBytes;
        if constexpr (kAddsUp) {
            bf16_bits* const to = arguments.out + static_cast<u64>(sorted.token()) * kHidden + first_column;
#pragma unroll
            for (u32 half = 0; half < 2; ++half) {
                const u32 column = half * (kTileColumns / 2) + lane * 2;
                add_bf16_pair(to + column,
                              *reinterpret_cast<const u32*>(values + column * sizeof(bf16_bits)));
            }
        } else {
            const u64 pair = static_cast<u64>(sorted.token()) * kSlots + sorted.slot();
            const u32 column = lane * 4;
            *reinterpret_cast<u32x2*>(arguments.v + pair * kHidden + first_column + column) =
                *reinterpret_cast<const u32x2*>(values + column * sizeof(bf16_bits));
        }
    }
}

}  // namespace kiln::mxmoe
