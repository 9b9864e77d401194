// The second kernel: a few rows of w2 of one expert times h of all of its tokens.
#pragma once

#include "constants.h"
#include "device/gfx950/cross_lane.h"
#include "device/gfx950/fragment.h"
#include "device/gfx950/memory.h"
#include "device/gfx950/vectors.h"
#include "device/layout.h"
#include "device/macros.h"
#include "device/types.h"
#include "fused_moe/multiply.h"
#include "fused_moe/problem.h"

namespace kiln::fused_moe {

using namespace kiln::device;
using namespace kiln::constants;

inline constexpr int kRowsOut = kRowTiles * kFragmentRows;
inline constexpr u32 kW2RowBytes = Weights::row_bytes(kIntermediate);
inline constexpr u32 kW2ExpertBytes = kHidden * kW2RowBytes;
inline constexpr u32 kW2Groups = round_up(kIntermediate / kMxGroup, PreshuffledScales::kTileGroups);
inline constexpr int kInnerBlocks = (kIntermediate + kWeightBlock - 1) / kWeightBlock;
// In mxfp4 the last block may be a half: the k of the upper half of the lanes lie past the end.
inline constexpr bool kHalfBlock = kIntermediate % kWeightBlock != 0;
// Rows of LDS begin at different banks.
inline constexpr int kProductRow = kRowTiles == 1 ? kRowsOut : kRowsOut + 4;

static_assert(kRowTiles >= 1 && kRowTiles <= 8 && kHidden / kFragmentRows % kRowTiles == 0,
              "row_tiles divides the tiles of hidden");
static_assert(kDownWaves >= 1 && kDownWaves <= 16);

// Lives in LDS: a row for each (expert, token), and one of zeros.
struct Products {
    f32 of[kPairs + 1][kProductRow] __attribute__((aligned(16)));
};
inline constexpr u32 kZeroRow = kPairs;

// A pair's row of products, and its weight. Pairs that contribute nothing have the row of zeros.
struct Term {
    u32 row;
    f32 weight;
};

// One expert's tokens times its rows: the products of the n-th of its tokens become row first + n.
template <int kTiles>
KILN_DEVICE void down_products(u32 expert, u32 first, u32 tokens, u32 first_tile, const u8* w2,
                               const void* w2_scale, const Buffer& h, u32 lane, Products& products) {
    constexpr u32 kScaleExpertBytes = kHidden * kW2Groups;
    const Buffer weights(w2 + static_cast<u64>(expert) * kW2ExpertBytes, kW2ExpertBytes);
    const Buffer scales(static_cast<const u8*>(w2_scale) + static_cast<u64>(expert) * kScaleExpertBytes,
                        kScaleExpertBytes);
    const f32* const block_scales =
        static_cast<const f32*>(w2_scale) + static_cast<u64>(expert) * (kHidden / kScaleSide * kInnerBlocks);

    const u32 weight_offset =
        static_cast<u32>(Weights::lane_offset(lane_in_quarter(lane), lane, kIntermediate));
    const u32 scale_offset =
        static_cast<u32>(PreshuffledScales::row_offset(lane_in_quarter(lane), kW2Groups)) +
        PreshuffledScales::group_offset(lane_quarter(lane));
    u32 h_offset[kTiles];
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
        const u32 token = tile * kFragmentRows + Bf16Fragment::row(lane);
        h_offset[tile] = token < tokens ? ((first + token) * kIntermediate + Weights::lane_k(lane)) *
                                              static_cast<u32>(sizeof(bf16_bits))
                                        : Buffer::kNowhere;
    }

    const auto load = [&](OperandBlock<kRowTiles, kTiles>& block, int n) {
        const bool past_end = kHalfBlock && n == kInnerBlocks - 1 && lane >= kWaveLanes / 2;
        const auto unless_past_end = [&](u32 offset) { return past_end ? Buffer::kNowhere : offset; };
#pragma unroll
        for (int row_tile = 0; row_tile < kRowTiles; ++row_tile) {
            const u32 tile = first_tile + row_tile;
#pragma unroll
            for (int i = 0; i < Weights::kLoads; ++i) {
                const SplitOffset offset(n * Weights::kBlockBytes + i * Weights::kLoadBytes);
                block.w[row_tile][i] =
                    weights.load_streaming_16(unless_past_end(weight_offset) + offset.in_instruction,
                                              tile * (kFragmentRows * kW2RowBytes) + offset.rest);
            }
            if constexpr (!kFp8) {
                block.scale[row_tile] = scales.load_byte(
                    unless_past_end(scale_offset) + PreshuffledScales::group_offset(4 * n),
                    static_cast<u32>(PreshuffledScales::row_offset(tile * kFragmentRows, kW2Groups)));
            } else {
                const u32 scale_row = tile * kFragmentRows / kScaleSide;
                block.lower_scale[row_tile] = uniform(block_scales[scale_row * kInnerBlocks + n]);
            }
        }
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
            for (int step = 0; step < Weights::kSteps; ++step) {
                const SplitOffset offset((n * kWeightBlock + Weights::step_k(step)) * sizeof(bf16_bits));
                block.tokens[tile][step] =
                    h.load_16(unless_past_end(h_offset[tile]) + offset.in_instruction, offset.rest);
            }
        }
    };
    f32x4 sums[kTiles * kRowTiles];
    multiply<kDownWaves, kInnerBlocks, kRowTiles, kTiles, false>(load, lane, sums);

#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
        const u32 token = tile * kFragmentRows + AccumulatorFragment::column(lane);
        if (token < tokens) {
#pragma unroll
            for (int row_tile = 0; row_tile < kRowTiles; ++row_tile) {
                const u32 row = row_tile * kFragmentRows + AccumulatorFragment::row(lane, 0);
                *reinterpret_cast<f32x4*>(&products.of[first + token][row]) =
                    sums[tile * kRowTiles + row_tile];
            }
        }
    }
}

// Each token's sum over its slots, in their order, to `out`. A thread adds up four columns of a token.
inline constexpr u32 kQuads = kRowsOut / 4;

KILN_DEVICE f32x4 quad(const Products& products, u32 row, u32 column) {
    return *reinterpret_cast<const f32x4*>(&products.of[row][column]);
}
KILN_DEVICE void store_quad(bf16_bits* out, u32 token, u32 column, f32x4 sum) {
    *reinterpret_cast<u32x2*>(out + static_cast<u64>(token) * kHidden + column) = packed(sum);
}

template <u32 kThreads>
KILN_DEVICE void add_up_slots(const Term (&terms)[kPairs], const Products& products, u32 tokens,
                              bf16_bits* out, u32 thread) {
    for (u32 unit = thread; unit < tokens * kQuads; unit += kThreads) {
        const u32 token = unit / kQuads;
        const u32 column = unit % kQuads * 4;
        f32x4 sum = {};
#pragma unroll
        for (int slot = 0; slot < kSlots; ++slot) {
            const Term term = terms[token * kSlots + slot];
            sum += quad(products, term.row, column) * term.weight;
        }
        store_quad(out, token, column, sum);
    }
}

// Where rows of products are slots, and ids and weights are the same for all lanes: scalar.
template <u32 kThreads>
KILN_DEVICE void add_up_slots_of_one_token(const i32* ids, const f32* weights, const Products& products,
                                           bf16_bits* out, u32 thread) {
    for (u32 column = thread * 4; column < kRowsOut; column += kThreads * 4) {
        f32x4 sum = {};
#pragma unroll
        for (int slot = 0; slot < kSlots; ++slot) {
            if (is_expert<kExperts>(ids[slot])) {
                sum += quad(products, slot, column) * weights[slot];
            }
        }
        store_quad(out, 0, column, sum);
    }
}

}  // namespace kiln::fused_moe
