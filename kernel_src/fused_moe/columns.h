// What a work-group of the first kernel does: kColumns columns of h, of one expert or of two that lie side by
// side.
#pragma once

#include "constants.h"
#include "device/gfx950/convert.h"
#include "device/gfx950/cross_lane.h"
#include "device/gfx950/expert_table.h"
#include "device/gfx950/fragment.h"
#include "device/gfx950/memory.h"
#include "device/gfx950/vectors.h"
#include "device/macros.h"
#include "device/types.h"
#include "fused_moe/arguments.h"
#include "fused_moe/gate_up.h"
#include "fused_moe/problem.h"

namespace kiln::fused_moe {

KILN_DEVICE Buffer rows_of_x(const Arguments& arguments) {
    return Buffer(arguments.x, ((arguments.m - 1) * arguments.ldx + kHidden) * sizeof(bf16_bits));
}

// Whether a lane has columns of h to store for its token.
KILN_DEVICE bool has_columns(u32 lane) {
    return kFragments == 2 || lane < kWaveLanes / 2;
}

// kColumns of the columns of all slots, which one token makes a row of kSlots * kIntermediate: of at most two
// slots.
KILN_DEVICE void gate_up_across_experts(const Arguments& arguments, u32 lane, u32 wave,
                                        GateUpPartials& partials) {
    constexpr u32 kScaleExpertBytes = kGateUpRows * kW13Groups;
    constexpr u32 kAllColumns = kSlots * kIntermediate;
    const u32 first = blockIdx.x * kColumns;
    const u32 last = first + kColumns < kAllColumns ? first + kColumns - 1 : kAllColumns - 1;
    // Read by all lanes at once, and then told apart.
    const u32 first_slot = first / kIntermediate;
    const u32 first_expert = uniform(static_cast<u32>(arguments.ids[first_slot]));
    const u32 last_expert = uniform(static_cast<u32>(arguments.ids[last / kIntermediate]));

    const u32 column = first + WeightRow::column(lane);
    const u32 expert = column / kIntermediate == first_slot ? first_expert : last_expert;
    const bool served = column <= last && is_expert<kExperts>(static_cast<i32>(expert));
    const u32 row = WeightRow::of_first_fragment(lane, column % kIntermediate);
    const GateUpSources<1> from = {
        Buffer(arguments.w13, kExperts * kW13ExpertBytes),
        Buffer(arguments.w13_scale, kExperts * kScaleExpertBytes),
        {},
        rows_of_x(arguments),
        served ? expert * kW13ExpertBytes + weight_offset(row, lane) : Buffer::kNowhere,
        served ? expert * kScaleExpertBytes + scale_offset(row, lane) : Buffer::kNowhere,
        {x_offset(0, Bf16Fragment::row(lane), 1, arguments.ldx, lane)},
        wave};
    gate_up(from, lane, partials, [&](u32, f32x4 columns) {
        if (AccumulatorFragment::column(lane) == 0 && has_columns(lane)) {
#pragma unroll
            for (int i = 0; i < AccumulatorFragment::kRegisters; ++i) {
                const u32 at = first + AccumulatorFragment::row(lane, i);
                if (at <= last) {
                    arguments.h[at] = static_cast<bf16_bits>(pack_bf16(columns[i], 0));
                }
            }
        }
    });
}

// kColumns columns of one expert for kTiles tiles of tokens. `token_of(number)` is the number-th of its
// `tokens`, and row `first_row + number` of h is its.
template <int kTiles, class TokenOf>
KILN_DEVICE void gate_up_of_expert(const Arguments& arguments, u32 expert, u32 first_column, u32 first_row,
                                   u32 tokens, const TokenOf& token_of, u32 lane, u32 wave,
                                   GateUpPartials& partials) {
    GateUpSources<kTiles> from = sources_of_expert<kTiles>(
        expert, first_column, arguments.w13, arguments.w13_scale, rows_of_x(arguments), lane, wave);
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
        const u32 number = tile * kFragmentRows + Bf16Fragment::row(lane);
        from.x_offset[tile] = x_offset(token_of(number), number, tokens, arguments.ldx, lane);
    }
    const Buffer h(arguments.h, kPairs * kIntermediate * sizeof(bf16_bits));
    gate_up(from, lane, partials, [&](u32 tile, f32x4 columns) {
        const u32 number = tile * kFragmentRows + AccumulatorFragment::column(lane);
        const u32 offset =
            ((first_row + number) * kIntermediate + AccumulatorFragment::row(lane, 0)) * sizeof(bf16_bits);
        h.store_8(packed(columns), number < tokens && has_columns(lane) ? offset : Buffer::kNowhere,
                  first_column * sizeof(bf16_bits));
    });
}

}  // namespace kiln::fused_moe
