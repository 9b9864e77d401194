// fused_moe/small_m for gfx950: out = sum over slots of weight * down(silu(gate(x)) * up(x)), few tokens,
// mxfp4 or fp8 weights, bf16 activations, two launches.
//
// gate_up: a work-group computes kColumns columns of h for all tokens of one expert; its waves split the
// hidden dimension and add up through LDS. down: a work-group computes 16 * kRowTiles columns of out for all
// tokens; its waves share out the experts, leave each (expert, token)'s product in LDS, and then add up each
// token's slots in their order. Nothing is sorted beforehand: every work-group finds the experts' tokens from
// the ids.
//
// Matrix instructions take weights as A, unpacked to bf16, and tokens as B: 16 tokens at the price of one. A
// lane ends with four consecutive columns of one token.

#include "constants.h"
#include "device/gfx950/cross_lane.h"
#include "device/gfx950/expert_table.h"
#include "device/gfx950/fragment.h"
#include "device/gfx950/memory.h"
#include "device/gfx950/vectors.h"
#include "device/types.h"
#include "fused_moe/arguments.h"
#include "fused_moe/columns.h"
#include "fused_moe/down.h"
#include "fused_moe/gate_up.h"
#include "fused_moe/problem.h"

extern "C" __global__ __launch_bounds__(64 * kiln::constants::kGateUpWaves)
    __attribute__((amdgpu_waves_per_eu(2))) void KILN_KERNEL_NAME_GATE_UP(KILN_FUSED_MOE_PARAMETERS) {
    using namespace kiln::fused_moe;
    const Arguments arguments = KILN_FUSED_MOE_ARGUMENTS;
    const u32 lane = threadIdx.x % kWaveLanes;
    const u32 wave = kGateUpWaves == 1 ? 0 : uniform(threadIdx.x / kWaveLanes);
    __shared__ GateUpPartials partials;

    if constexpr (kMaxM == 1) {
        if (blockIdx.x == 0 && threadIdx.x < kSlots) {
            flag_if_illegal(ids[threadIdx.x], flag);
        }
        if constexpr (kAcrossExperts) {
            gate_up_across_experts(arguments, lane, wave, partials);
        } else {
            const u32 slot = blockIdx.x / kColumnGroups;
            if (const i32 expert = ids[slot]; is_expert<kExperts>(expert)) {
                gate_up_of_expert<1>(
                    arguments, static_cast<u32>(expert), blockIdx.x % kColumnGroups * kColumns, slot, 1,
                    [](u32) { return 0; }, lane, wave, partials);
            }
        }
    } else {
        using Table = ExpertTable<kExperts, kSlots, kMaxM, 64 * kGateUpWaves>;
        struct Group {
            typename Table::Mask tokens;
            u32 expert;
            u32 first_row;
        };
        __shared__ Table table;
        __shared__ Group group;
        const typename Table::Ids pairs = Table::load(ids, m, threadIdx.x);
        if (blockIdx.x == 0) {
#pragma unroll
            for (int n = 0; n < Table::kPairsOfThread; ++n) {
                flag_if_illegal(pairs.of[n], flag);
            }
        }
        table.fill(pairs, threadIdx.x);
        const u32 wanted = blockIdx.x / kColumnGroups;
        if (wave == 0) {
            const u32 groups = table.for_each_group(
                lane, [&](u32 expert, typename Table::Mask tokens, u32 number, u32 first_row) {
                    if (number == wanted) {
                        group = {tokens, expert, first_row};
                    }
                });
            if (lane == kWaveLanes - 1 && groups <= wanted) {
                group = {0, 0, 0};
            }
        }
        __syncthreads();
        const u64 mask = static_cast<u64>(uniform(static_cast<u32>(group.tokens >> 16 >> 16))) << 32 |
                         uniform(static_cast<u32>(group.tokens));
        if (mask == 0) {
            return;
        }
        const u32 expert = uniform(group.expert);
        const u32 first_row = uniform(group.first_row);
        const u32 tokens = count_lanes(mask);
        const u32 members = number_of_bit(mask, lane);
        with_tiles(tokens, [&](auto tiles) {
            gate_up_of_expert<decltype(tiles)::value>(
                arguments, expert, blockIdx.x % kColumnGroups * kColumns, first_row, tokens,
                [&](u32 number) { return from_lane(members, number); }, lane, wave, partials);
        });
    }
}

extern "C" __global__ __launch_bounds__(64 * kiln::constants::kDownWaves)
    __attribute__((amdgpu_waves_per_eu(2))) void KILN_KERNEL_NAME_DOWN(KILN_FUSED_MOE_PARAMETERS) {
    using namespace kiln::fused_moe;
    const Arguments arguments = KILN_FUSED_MOE_ARGUMENTS;
    constexpr u32 kThreads = 64 * kDownWaves;
    const u32 lane = threadIdx.x % kWaveLanes;
    const u32 wave = kDownWaves == 1 ? 0 : uniform(threadIdx.x / kWaveLanes);
    const u32 first_tile = blockIdx.x * kRowTiles;
    const Buffer rows(h, kPairs * kIntermediate * sizeof(bf16_bits));
    bf16_bits* const result = out + first_tile * kFragmentRows;

    __shared__ Products products;
    if constexpr (kMaxM == 1) {
        for (u32 slot = wave; slot < kSlots; slot += kDownWaves) {
            if (const i32 expert = ids[slot]; is_expert<kExperts>(expert)) {
                down_products<1>(expert, slot, 1, first_tile, arguments.w2, arguments.w2_scale, rows, lane,
                                 products);
            }
        }
        __syncthreads();
        add_up_slots_of_one_token<kThreads>(ids, weights, products, result, threadIdx.x);
    } else {
        using Table = ExpertTable<kExperts, kSlots, kMaxM, kThreads>;
        struct Group {
            u32 expert;
            u32 first_row;
            u32 tokens;
        };
        constexpr u32 kMaxGroups = kPairs < kExperts ? kPairs : kExperts;
        __shared__ Table table;
        __shared__ Group groups[kMaxGroups];
        __shared__ u32 first_rows[kExperts];
        __shared__ u32 group_count;
        __shared__ Term terms[kPairs];
        for (u32 i = threadIdx.x; i < kRowsOut; i += kThreads) {
            products.of[kZeroRow][i] = 0;
        }
        const typename Table::Ids pairs = Table::load(ids, m, threadIdx.x);
        table.fill(pairs, threadIdx.x);
        if (wave == 0) {
            const u32 count = table.for_each_group(
                lane, [&](u32 expert, typename Table::Mask tokens, u32 number, u32 first_row) {
                    groups[number] = {expert, first_row, count_bits(tokens)};
                    first_rows[expert] = first_row;
                });
            if (lane == kWaveLanes - 1) {
                group_count = count;
            }
        }
        __syncthreads();
#pragma unroll
        for (int n = 0; n < Table::kPairsOfThread; ++n) {
            const u32 pair = threadIdx.x + n * kThreads;
            if (pair < static_cast<u32>(m) * kSlots) {
                const i32 id = pairs.of[n];
                Term term = {kZeroRow, 0};
                if (is_expert<kExperts>(id)) {
                    term = {first_rows[id] + table.tokens_before(id, pair / kSlots), weights[pair]};
                }
                terms[pair] = term;
            }
        }
        const u32 count = uniform(group_count);
        for (u32 number = wave; number < count; number += kDownWaves) {
            const u32 expert = uniform(groups[number].expert);
            const u32 first_row = uniform(groups[number].first_row);
            const u32 tokens = uniform(groups[number].tokens);
            with_tiles(tokens, [&](auto tiles) {
                down_products<decltype(tiles)::value>(expert, first_row, tokens, first_tile, arguments.w2,
                                                      arguments.w2_scale, rows, lane, products);
            });
        }
        __syncthreads();
        add_up_slots<kThreads>(terms, products, m, result, threadIdx.x);
    }
}
