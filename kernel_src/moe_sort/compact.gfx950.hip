// moe_sort/compact for gfx950: at most 64 pairs, so that a wave holds them all, one a lane, and sorts them in
// its registers. One launch, no LDS, no barrier.
//
// Work-group 0 writes the sorted rows; each of its waves sorts for itself and writes every fourth part. The
// others do a piece of a token each; those that quantise sort again, since they need the rows of their token.

#include "constants.h"
#include "device/gfx950/cross_lane.h"
#include "device/gfx950/vectors.h"
#include "device/types.h"
#include "moe_sort/arguments.h"
#include "moe_sort/tokens.h"

namespace kiln {
namespace {

using namespace kiln::moe_sort;

// The pairs of the launch in a wave. Position: a place in the order by expert, then by pair; pairs that are
// left out come last. A lane is a pair first and a position afterwards.
struct SortedPairs {
    u32 position;      // of this lane's pair
    u32 num_sorted;    // pairs that are not left out: their positions come first
    u32 expert;        // at this lane's position
    u32 pair;          // likewise
    u32 row;           // likewise
    u64 block_starts;  // positions that begin a block

    KILN_DEVICE SortedPairs(const Arguments& arguments, u32 pairs, u32 lane) {
        const u32 own_expert = expert_of(arguments, lane, pairs);
        const u64 taken = lanes_where(own_expert != kNoExpert);
        num_sorted = count_lanes(taken);

        const u32 key = own_expert == kNoExpert ? ~0U : own_expert * kWaveLanes + lane;
        constexpr u32 kStep = 8;
        u32 smaller = 0;
        for (u32 first = 0; first < pairs; first += kStep) {
#pragma unroll
            for (u32 i = 0; i < kStep; ++i) {
                smaller += read_lane(key, first + i) < key ? 1 : 0;
            }
        }
        position = own_expert == kNoExpert ? num_sorted + count_below(~taken) : smaller;

        const u32 sorted_key = to_lane(key, position);
        expert = sorted_key / kWaveLanes;
        pair = sorted_key % kWaveLanes;
        const u32 before = from_lane(expert, lane - 1);
        const u64 starts = lanes_where(lane == 0 || expert != before);
        // The last position at or below this one that begins an expert.
        const u64 starts_so_far = starts & (~0ULL >> (kWaveLanes - 1 - lane));
        const u32 start = kWaveLanes - 1 - static_cast<u32>(__builtin_clzll(starts_so_far));
        const u32 rank = lane - start;
        block_starts = lanes_where(lane < num_sorted && rank % kBlockM == 0);
        row = block() * kBlockM + rank % kBlockM;
    }

    // The block of rows that this lane's position lies in.
    KILN_DEVICE u32 block() const {
        return count_below(block_starts) + (starts_block() ? 1 : 0) - 1;
    }
    KILN_DEVICE bool starts_block() const {
        return (block_starts >> threadIdx.x % kWaveLanes & 1) != 0;
    }
};

KILN_DEVICE void write_sorted(const Arguments& arguments, u32 pairs) {
    const u32 lane = threadIdx.x % kWaveLanes;
    const u32 wave = uniform(threadIdx.x / kWaveLanes);
    const f32 own_weight = lane < pairs ? arguments.weights[lane] : 0.0F;
    const SortedPairs sorted(arguments, pairs, lane);
    const u32 blocks = count_lanes(sorted.block_starts);
    const i32 entry = entry_of(sorted.pair);
    const u32 weight = to_lane(bits_as<u32>(own_weight), sorted.position);

    // Of a block: where its positions begin, and where the next one's do. Lane b knows block b.
    const bool starts = sorted.starts_block();
    const u32 place = starts ? sorted.block() : blocks + count_below(~sorted.block_starts);
    const u32 begin = to_lane(lane, place);
    const u32 next = from_lane(begin, lane + 1);
    const u32 end = lane + 1 < blocks ? next : sorted.num_sorted;

    if (wave == 0) {
        if (starts) {
            arguments.sorted_expert_ids[sorted.block()] = static_cast<i32>(sorted.expert);
        }
        if (lane == 0) {
            write_num_valid(arguments, blocks);
        }
    }
    constexpr u32 kLaneRows = 4;
    const u32 quads = blocks * (kBlockM / kLaneRows);
    for (u32 first = wave * kWaveLanes; first < quads; first += kThreads) {
        const u32 quad = first + lane;
        const u32 block = quad / (kBlockM / kLaneRows);
        const u32 block_begin = from_lane(begin, block);
        const u32 block_end = from_lane(end, block);
        const u32 position = block_begin + quad % (kBlockM / kLaneRows) * kLaneRows;
        i32x4 entries;
        f32x4 weights;
#pragma unroll
        for (u32 i = 0; i < kLaneRows; ++i) {
            const u32 found_entry = from_lane(static_cast<u32>(entry), position + i);
            const u32 found_weight = from_lane(weight, position + i);
            const bool is_pair = position + i < block_end;
            entries[i] = is_pair ? static_cast<i32>(found_entry) : padding_entry(arguments.m);
            weights[i] = is_pair ? bits_as<f32>(found_weight) : 0.0F;
        }
        if (quad < quads) {
            *reinterpret_cast<i32x4*>(arguments.sorted_ids + quad * kLaneRows) = entries;
            *reinterpret_cast<f32x4*>(arguments.sorted_weights + quad * kLaneRows) = weights;
        }
    }
}

KILN_DEVICE void do_piece(const Arguments& arguments, u32 pairs, const Piece& piece) {
    if constexpr (kQuantised) {
        const u32x4 elements = load(arguments, piece);
        zero(arguments, piece);
        const SortedPairs sorted(arguments, pairs, threadIdx.x % kWaveLanes);
        const u32 row = from_lane(sorted.row, sorted.position);  // of this lane's pair
        const u32 own_row = sorted.position < sorted.num_sorted ? row : kNoRow;
        quantise(arguments, piece, elements,
                 [&](u32 slot) { return from_lane(own_row, piece.token * kSlots + slot); });
    } else if constexpr (kHidden > 0) {
        zero(arguments, piece);
    }
}

}  // namespace
}  // namespace kiln

extern "C" __global__ __launch_bounds__(kiln::moe_sort::kThreads) void KILN_KERNEL_NAME(
    KILN_MOE_SORT_PARAMETERS) {
    using namespace kiln;
    const Arguments arguments = KILN_MOE_SORT_ARGUMENTS;
    const u32 pairs = arguments.m * kSlots;
    if (blockIdx.x == 0) {
        write_sorted(arguments, pairs);
    } else {
        do_piece(arguments, pairs, Piece(blockIdx.x - 1, threadIdx.x));
    }
}
