// The first kernel: h = silu(gate(x)) * up(x), a few columns of one expert for all of its tokens.
#pragma once

#include "constants.h"
#include "device/gfx950/cross_lane.h"
#include "device/gfx950/fragment.h"
#include "device/gfx950/memory.h"
#include "device/gfx950/reduce.h"
#include "device/gfx950/vectors.h"
#include "device/layout.h"
#include "device/macros.h"
#include "device/types.h"
#include "fused_moe/multiply.h"
#include "fused_moe/problem.h"
#include "fused_moe/silu.h"

namespace kiln::fused_moe {

using namespace kiln::device;
using namespace kiln::constants;

inline constexpr int kHiddenBlocks = kHidden / kWeightBlock;
inline constexpr int kWaveBlocks = kHiddenBlocks / kGateUpWaves;
inline constexpr u32 kW13RowBytes = Weights::row_bytes(kHidden);
inline constexpr u32 kW13ExpertBytes = kGateUpRows * kW13RowBytes;
inline constexpr u32 kW13Groups = round_up(kHidden / kMxGroup, PreshuffledScales::kTileGroups);

// Up to eight columns' gate and up rows fit one fragment of 16 rows; more take one each.
inline constexpr int kFragments = kColumns <= 8 ? 1 : 2;
// With one token, all slots read the same row of x, and work-groups may take columns across experts.
inline constexpr bool kAcrossExperts = kMaxM == 1 && !kFp8 && kColumns != 8 && kColumns != 16;
inline constexpr int kColumnGroups = kIntermediate / kColumns;

static_assert(kGateUpWaves >= 1 && kGateUpWaves <= 16 && kHiddenBlocks % kGateUpWaves == 0,
              "waves divide the blocks of hidden");
static_assert(kAcrossExperts ? kColumns >= 1 && kColumns <= 16 : kColumns == 8 || kColumns == 16,
              "columns are 8 or 16, or any number up to 16 where one token's experts lie side by side");
static_assert(!kAcrossExperts || static_cast<u64>(kExperts) * kW13ExpertBytes < Buffer::kNowhere,
              "32-bit offsets reach the weights of all experts");

// Which row of w13 a lane takes as its row of A. With two fragments, the second one's are the up rows.
struct WeightRow {
    KILN_DEVICE static constexpr u32 column(u32 lane) {
        return lane_in_quarter(lane) % (kFragments == 1 ? 8 : 16);
    }
    KILN_DEVICE static constexpr u32 of_first_fragment(u32 lane, u32 column) {
        const u32 gate = kInterleaved ? column / kTile * 2 * kTile + column % kTile : column;
        return kFragments == 1 ? lane_in_quarter(lane) / 8 * kToUp + gate : gate;
    }
    // Rows from a gate row to its up row. Separated, whole tiles of both layouts lie between them;
    // interleaved, a tile of weights, and half of one of scales. So offsets grow by the same for all.
    static constexpr u32 kTile = PreshuffledWeights::kTileRows;
    static constexpr u32 kToUp = kInterleaved ? kTile : kIntermediate;
    static_assert(kIntermediate % PreshuffledScales::kTileRows == 0);
    static constexpr u32 kUpWeights = kToUp * kW13RowBytes;
    static constexpr u32 kUpScales = kInterleaved
                                         ? static_cast<u32>(PreshuffledScales::row_offset(kTile, kW13Groups))
                                         : kToUp * kW13Groups;
};

// Where a wave finds its operands. Offsets of lanes without any are Buffer::kNowhere.
template <int kTiles>
struct GateUpSources {
    Buffer weights;
    Buffer scales;               // mxfp4
    const f32* block_scales[2];  // fp8: of gate and up, from the wave's first block on
    Buffer x;
    u32 weight_offset;  // of a lane, as is scale_offset
    u32 scale_offset;
    u32 x_offset[kTiles];
    u32 wave;
};

// The wave's part of the sums over hidden.
template <int kTiles>
KILN_DEVICE void gate_up_sums(const GateUpSources<kTiles>& from, u32 lane,
                              f32x4 (&sums)[kTiles * kFragments]) {
    const u32 first = from.wave * kWaveBlocks;
    const auto load = [&](OperandBlock<kFragments, kTiles>& block, u32 n) {
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
            for (int step = 0; step < Weights::kSteps; ++step) {
                const u32 k = n * kWeightBlock + Weights::step_k(step);
                block.tokens[tile][step] = from.x.load_16(from.x_offset[tile] + k * sizeof(bf16_bits),
                                                          first * kWeightBlock * sizeof(bf16_bits));
            }
        }
#pragma unroll
        for (int f = 0; f < kFragments; ++f) {
#pragma unroll
            for (int i = 0; i < Weights::kLoads; ++i) {
                const SplitOffset offset(n * Weights::kBlockBytes + i * Weights::kLoadBytes);
                block.w[f][i] = from.weights.load_streaming_16(
                    from.weight_offset + offset.in_instruction,
                    f * WeightRow::kUpWeights + offset.rest + first * Weights::kBlockBytes);
            }
            if constexpr (!kFp8) {
                // Where a wave begins with a pair of blocks, the offset of a block is the wave's plus its
                // own.
                constexpr bool kPairs = kWaveBlocks % 2 == 0;
                const u32 in_wave = PreshuffledScales::group_offset(4 * (kPairs ? first : first + n));
                const u32 in_lane = kPairs ? PreshuffledScales::group_offset(4 * n) : 0;
                block.scale[f] =
                    from.scales.load_byte(from.scale_offset + in_lane, f * WeightRow::kUpScales + in_wave);
            } else {
                // With one fragment, the upper half of the wave has the sums of up rows.
                block.lower_scale[f] = uniform(from.block_scales[f][n]);
                block.upper_scale[f] = uniform(from.block_scales[1][n]);
            }
        }
    };
    multiply<kGateUpWaves, kWaveBlocks, kFragments, kTiles, kFragments == 1>(load, lane, sums);
}

using GateUpPartials = WavePartials<kGateUpWaves, kTokenTiles * kFragments>;

// A lane's four columns of h from a tile's sums over all waves. With one fragment, gate lies in the lower
// half of the wave and up in the upper: the lower half gets the columns.
KILN_DEVICE f32x4 h_columns(const GateUpPartials& partials, u32 tile, u32 lane) {
    const u32 fragment = tile * kFragments;
    const f32x4 gate = partials.sum(fragment, lane);
    const f32x4 up = kFragments == 2 ? partials.sum(fragment + 1, lane)
                                     : partials.sum(fragment, (lane + kWaveLanes / 2) % kWaveLanes);
    return {silu_times(gate.x, up.x), silu_times(gate.y, up.y), silu_times(gate.z, up.z),
            silu_times(gate.w, up.w)};
}

// The waves' sums, and what becomes of them: store(tile, four columns of h).
template <int kTiles, class Store>
KILN_DEVICE void gate_up(const GateUpSources<kTiles>& from, u32 lane, GateUpPartials& partials,
                         const Store& store) {
    f32x4 sums[kTiles * kFragments];
    gate_up_sums(from, lane, sums);
    partials.put(from.wave, sums, lane);
    __syncthreads();
    for (u32 tile = from.wave; tile < kTiles; tile += kGateUpWaves) {
        store(tile, h_columns(partials, tile, lane));
    }
}

// Where a lane's part of a row of w13 begins, and the scale of its first 32 k.
KILN_DEVICE u32 weight_offset(u32 row, u32 lane) {
    return static_cast<u32>(Weights::lane_offset(row, lane, kHidden));
}
KILN_DEVICE u32 scale_offset(u32 row, u32 lane) {
    return static_cast<u32>(PreshuffledScales::row_offset(row, kW13Groups)) +
           PreshuffledScales::group_offset(lane_quarter(lane));
}

// Where a lane's part of the row of x of a token begins: the number-th of `tokens`.
KILN_DEVICE u32 x_offset(u32 token, u32 number, u32 tokens, u32 ldx, u32 lane) {
    return number < tokens ? (token * ldx + Weights::lane_k(lane)) * static_cast<u32>(sizeof(bf16_bits))
                           : Buffer::kNowhere;
}

// The operands of one expert. x_offset is the caller's.
template <int kTiles>
KILN_DEVICE GateUpSources<kTiles> sources_of_expert(u32 expert, u32 first_column, const u8* w13,
                                                    const void* w13_scale, const Buffer& x, u32 lane,
                                                    u32 wave) {
    constexpr u32 kScaleExpertBytes = kGateUpRows * kW13Groups;
    const u32 row = WeightRow::of_first_fragment(lane, first_column + WeightRow::column(lane));
    GateUpSources<kTiles> from = {
        Buffer(w13 + static_cast<u64>(expert) * kW13ExpertBytes, kW13ExpertBytes),
        Buffer(static_cast<const u8*>(w13_scale) + static_cast<u64>(expert) * kScaleExpertBytes,
               kScaleExpertBytes),
        {},
        x,
        weight_offset(row, lane),
        scale_offset(row, lane),
        {},
        wave};
    if constexpr (kFp8) {
        constexpr u32 kScaleRow = kHidden / kScaleSide;
        const f32* const scales = static_cast<const f32*>(w13_scale) +
                                  static_cast<u64>(expert) * (kGateUpRows / kScaleSide * kScaleRow) +
                                  wave * kWaveBlocks;
        from.block_scales[0] = scales + first_column / kScaleSide * kScaleRow;
        from.block_scales[1] = scales + (kIntermediate + first_column) / kScaleSide * kScaleRow;
    }
    return from;
}

}  // namespace kiln::fused_moe
