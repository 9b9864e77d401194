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
#include "device/gfx950/convert.h"
#include "device/gfx950/cross_lane.h"
#include "device/gfx950/expert_table.h"
#include "device/gfx950/fragment.h"
#include "device/gfx950/memory.h"
#include "device/gfx950/vectors.h"
#include "device/types.h"
#include "fused_moe/down.h"
#include "fused_moe/gate_up.h"
#include "fused_moe/problem.h"

extern "C" __global__ __launch_bounds__(64 * kiln::constants::kGateUpWaves)
    __attribute__((amdgpu_waves_per_eu(2))) void KILN_KERNEL_NAME_GATE_UP(
        const kiln::device::bf16_bits* __restrict__ x, const kiln::device::u8* __restrict__ w13,
        const void* __restrict__ w13_scale, [[maybe_unused]] const kiln::device::u8* __restrict__ w2,
        [[maybe_unused]] const void* __restrict__ w2_scale, const int* __restrict__ ids,
        [[maybe_unused]] const float* __restrict__ weights,
        [[maybe_unused]] kiln::device::bf16_bits* __restrict__ out, unsigned* __restrict__ flag,
        kiln::device::bf16_bits* __restrict__ h, int m, int ldx) {
    using namespace kiln::fused_moe;
    const u32 lane = threadIdx.x % kWaveLanes;
    const u32 wave = kGateUpWaves == 1 ? 0 : uniform(threadIdx.x / kWaveLanes);
    const Buffer rows(x, ((static_cast<u32>(m) - 1) * static_cast<u32>(ldx) + kHidden) * sizeof(bf16_bits));
    const u32 lane_k = Weights::lane_k(lane) * sizeof(bf16_bits);
    __shared__ GateUpPartials partials;

    if constexpr (kMaxM == 1) {
        if (blockIdx.x == 0 && threadIdx.x < kSlots) {
            flag_if_illegal(ids[threadIdx.x], flag);
        }
        const u32 x_offset = Bf16Fragment::row(lane) == 0 ? lane_k : Buffer::kNowhere;
        if constexpr (kAcrossExperts) {
            constexpr u32 kScaleExpertBytes = kGateUpRows * kW13Groups;
            const u32 first = blockIdx.x * kColumns;
            const u32 column = WeightRow::column(lane);
            const u32 flat = first + column;
            const bool inside = column < kColumns && flat < kSlots * kIntermediate;
            // At most two slots: their ids come by scalar loads.
            const u32 last = first + kColumns - 1;
            const u32 first_slot = first / kIntermediate;
            const u32 last_slot = last < kSlots * kIntermediate ? last / kIntermediate : kSlots - 1;
            const u32 first_expert = uniform(static_cast<u32>(ids[first_slot]));
            const u32 last_expert = uniform(static_cast<u32>(ids[last_slot]));
            const u32 expert = flat / kIntermediate == first_slot ? first_expert : last_expert;
            const bool served = inside && is_expert<kExperts>(expert);
            const u32 row = WeightRow::of_first_fragment(lane, flat % kIntermediate);
            GateUpSources<1> from = {
                Buffer(w13, kExperts * kW13ExpertBytes),
                Buffer(w13_scale, kExperts * kScaleExpertBytes),
                {},
                rows,
                served ? expert * kW13ExpertBytes + weight_offset(row, lane) : Buffer::kNowhere,
                served ? expert * kScaleExpertBytes + scale_offset(row, lane) : Buffer::kNowhere,
                {x_offset},
                wave};
            gate_up(from, lane, partials, [&](u32, f32x4 columns) {
                if (AccumulatorFragment::column(lane) == 0 && (kFragments == 2 || lane < kWaveLanes / 2)) {
#pragma unroll
                    for (int i = 0; i < AccumulatorFragment::kRegisters; ++i) {
                        const u32 at = AccumulatorFragment::row(lane, i);
                        if (at < kColumns && first + at < kSlots * kIntermediate) {
                            h[first + at] = static_cast<bf16_bits>(pack_bf16(columns[i], 0));
                        }
                    }
                }
            });
        } else {
            const u32 slot = blockIdx.x / kColumnGroups;
            const u32 first_column = blockIdx.x % kColumnGroups * kColumns;
            const i32 expert = ids[slot];
            if (!is_expert<kExperts>(expert)) {
                return;
            }
            GateUpSources<1> from =
                sources_of_expert<1>(expert, first_column, w13, w13_scale, rows, lane, wave);
            from.x_offset[0] = x_offset;
            const Buffer result(h, kSlots * kIntermediate * sizeof(bf16_bits));
            gate_up(from, lane, partials, [&](u32, f32x4 columns) {
                const u32 column = AccumulatorFragment::row(lane, 0);
                const bool own =
                    AccumulatorFragment::column(lane) == 0 && (kFragments == 2 || lane < kWaveLanes / 2);
                result.store_8({pack_bf16(columns.x, columns.y), pack_bf16(columns.z, columns.w)},
                               own ? column * sizeof(bf16_bits) : Buffer::kNowhere,
                               (slot * kIntermediate + first_column) * sizeof(bf16_bits));
            });
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
        const u32 first_column = blockIdx.x % kColumnGroups * kColumns;
        const Buffer result(h, kPairs * kIntermediate * sizeof(bf16_bits));
        with_tiles(tokens, [&](auto tiles) {
            constexpr int kTiles = decltype(tiles)::value;
            GateUpSources<kTiles> from =
                sources_of_expert<kTiles>(expert, first_column, w13, w13_scale, rows, lane, wave);
#pragma unroll
            for (int tile = 0; tile < kTiles; ++tile) {
                const u32 number = tile * kFragmentRows + Bf16Fragment::row(lane);
                const u32 token = from_lane(members, number);
                from.x_offset[tile] = number < tokens
                                          ? token * static_cast<u32>(ldx) * sizeof(bf16_bits) + lane_k
                                          : Buffer::kNowhere;
            }
            gate_up(from, lane, partials, [&](u32 tile, f32x4 columns) {
                const u32 number = tile * kFragmentRows + AccumulatorFragment::column(lane);
                const bool own = number < tokens && (kFragments == 2 || lane < kWaveLanes / 2);
                result.store_8(
                    {pack_bf16(columns.x, columns.y), pack_bf16(columns.z, columns.w)},
                    own ? ((first_row + number) * kIntermediate + AccumulatorFragment::row(lane, 0)) *
                              sizeof(bf16_bits)
                        : Buffer::kNowhere,
                    first_column * sizeof(bf16_bits));
            });
        });
    }
}

extern "C" __global__ __launch_bounds__(64 * kiln::constants::kDownWaves)
    __attribute__((amdgpu_waves_per_eu(2))) void KILN_KERNEL_NAME_DOWN(
        [[maybe_unused]] const kiln::device::bf16_bits* __restrict__ x,
        [[maybe_unused]] const kiln::device::u8* __restrict__ w13,
        [[maybe_unused]] const void* __restrict__ w13_scale, const kiln::device::u8* __restrict__ w2,
        const void* __restrict__ w2_scale, const int* __restrict__ ids, const float* __restrict__ weights,
        kiln::device::bf16_bits* __restrict__ out, [[maybe_unused]] unsigned* __restrict__ flag,
        const kiln::device::bf16_bits* __restrict__ h, int m, [[maybe_unused]] int ldx) {
    using namespace kiln::fused_moe;
    constexpr u32 kThreads = 64 * kDownWaves;
    const u32 lane = threadIdx.x % kWaveLanes;
    const u32 wave = kDownWaves == 1 ? 0 : uniform(threadIdx.x / kWaveLanes);
    const u32 first_tile = blockIdx.x * kRowTiles;
    const Buffer rows(h, kPairs * kIntermediate * sizeof(bf16_bits));

    // A pair's row of products, and its weight. Pairs that contribute nothing have a row of zeros.
    struct Term {
        u32 row;
        f32 weight;
    };
    __shared__ Term terms[kPairs];
    __shared__ f32 products[kPairs + 1][kProductRow] __attribute__((aligned(16)));
    constexpr u32 kZeroRow = kPairs;
    for (u32 i = threadIdx.x; i < kRowsOut; i += kThreads) {
        products[kZeroRow][i] = 0;
    }

    if constexpr (kMaxM == 1) {
        if (threadIdx.x < kSlots) {
            const bool served = is_expert<kExperts>(ids[threadIdx.x]);
            terms[threadIdx.x] = {served ? threadIdx.x : kZeroRow, served ? weights[threadIdx.x] : 0};
        }
        for (u32 slot = wave; slot < kSlots; slot += kDownWaves) {
            const i32 expert = ids[slot];
            if (is_expert<kExperts>(expert)) {
                down_products<1>(expert, slot, 1, first_tile, w2, w2_scale, rows, lane, products);
            }
        }
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
                down_products<decltype(tiles)::value>(expert, first_row, tokens, first_tile, w2, w2_scale,
                                                      rows, lane, products);
            });
        }
    }
    __syncthreads();

    // A thread adds up four columns of a token.
    constexpr u32 kQuads = kRowsOut / 4;
    for (u32 unit = threadIdx.x; unit < static_cast<u32>(m) * kQuads; unit += kThreads) {
        const u32 token = unit / kQuads;
        const u32 column = unit % kQuads * 4;
        f32x4 sum = {};
#pragma unroll
        for (int slot = 0; slot < kSlots; ++slot) {
            const Term term = terms[token * kSlots + slot];
            sum += *reinterpret_cast<const f32x4*>(&products[term.row][column]) * term.weight;
        }
        const u32x2 packed = {pack_bf16(sum.x, sum.y), pack_bf16(sum.z, sum.w)};
        *reinterpret_cast<u32x2*>(out + static_cast<u64>(token) * kHidden + first_tile * kFragmentRows +
                                  column) = packed;
    }
}
