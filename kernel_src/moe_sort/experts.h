// From how many pairs each expert has to the blocks of rows that it gets, and the rows that stay without a
// pair.
#pragma once

#include "device/gfx950/cross_lane.h"
#include "device/gfx950/vectors.h"
#include "moe_sort/arguments.h"

namespace kiln::moe_sort {

inline constexpr u32 kLaneExperts = (kExperts + kThreads - 1) / kThreads;
inline constexpr u32 kPaddedExperts = kLaneExperts * kThreads;

// In LDS.
struct ExpertBlocks {
    u32 pairs[kPaddedExperts];  // of an expert
    u32 first[kPaddedExperts];  // its first block
    u32 of_waves[kWaves];       // blocks of the experts that a wave adds up

    // first[] from pairs[], which a barrier has made known, and which covers what pads: 0 there. Returns the
    // number of all blocks; first[] is known after the next barrier.
    KILN_DEVICE u32 number() {
        const u32 thread = threadIdx.x;
        const u32 wave = uniform(thread / kWaveLanes);
        u32 blocks[kLaneExperts];
        u32 sum = 0;
#pragma unroll
        for (u32 i = 0; i < kLaneExperts; ++i) {
            blocks[i] = (pairs[thread * kLaneExperts + i] + kBlockM - 1) / kBlockM;
            sum += blocks[i];
        }
        const u32 running = running_sum(sum);
        if (thread % kWaveLanes == kWaveLanes - 1) {
            of_waves[wave] = running;
        }
        __syncthreads();
        u32 total = 0;
        u32 next = running - sum;
#pragma unroll
        for (u32 other = 0; other < kWaves; ++other) {
            next += other < wave ? of_waves[other] : 0;
            total += of_waves[other];
        }
#pragma unroll
        for (u32 i = 0; i < kLaneExperts; ++i) {
            first[thread * kLaneExperts + i] = next;
            next += blocks[i];
        }
        return total;
    }
};

// Work-groups that write rows without a pair, of kPaddedTogether experts each.
inline constexpr u32 kPaddingGroups = (kExperts + kPaddedTogether - 1) / kPaddedTogether;

// Of the experts of one such group.
KILN_DEVICE void write_padding(const Arguments& arguments, u32 group, const u32* pairs, const u32* first) {
    constexpr u32 kLanes = 16;  // side by side in an expert's rows
    for (u32 i = threadIdx.x / kLanes; i < kPaddedTogether; i += kThreads / kLanes) {
        const u32 expert = group * kPaddedTogether + i;
        if (expert < kExperts) {
            const u32 begin = pairs[expert];
            const u32 end = (begin + kBlockM - 1) / kBlockM * kBlockM;
            for (u32 rank = begin + threadIdx.x % kLanes; rank < end; rank += kLanes) {
                write_row(arguments, first[expert] * kBlockM + rank, padding_entry(arguments.m), 0.0F);
            }
        }
    }
}

// What the one who knows a pair's row writes of it.
KILN_DEVICE void write_pair(const Arguments& arguments, u32 pair, u32 expert, u32 row) {
    write_row(arguments, row, entry_of(pair), arguments.weights[pair]);
    if (row % kBlockM == 0) {
        arguments.sorted_expert_ids[row / kBlockM] = static_cast<i32>(expert);
    }
}

}  // namespace kiln::moe_sort
