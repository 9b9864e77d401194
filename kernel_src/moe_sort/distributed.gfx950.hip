// moe_sort/distributed for gfx950: at most 256 pairs, one a lane of a work-group, in one launch. No
// work-group waits for another: each that needs rows counts all pairs again.
//
// The first work-groups write the rows of 64 experts each; the others do a piece of a token each.

#include "constants.h"
#include "device/gfx950/cross_lane.h"
#include "device/gfx950/vectors.h"
#include "device/types.h"
#include "moe_sort/arguments.h"
#include "moe_sort/experts.h"
#include "moe_sort/tokens.h"

namespace kiln {
namespace {

using namespace kiln::moe_sort;

struct Shared {
    u32 of_wave[kWaves][kPaddedExperts];  // pairs of an expert that a wave holds
    ExpertBlocks experts;
    u32 row_of_pair[kThreads];
};

struct Counted {
    u32 expert;  // of this lane's pair
    u32 row;     // likewise; kNoRow when it is left out
    u32 blocks;  // of all experts
};

// Counts the pairs; afterwards `shared.experts` is known to all.
KILN_DEVICE Counted count(const Arguments& arguments, Shared& shared) {
    const u32 thread = threadIdx.x;
    const u32 wave = uniform(thread / kWaveLanes);
    const u32 expert = expert_of(arguments, thread, arguments.m * kSlots);
#pragma unroll
    for (u32 i = 0; i < kWaves * kLaneExperts; ++i) {
        (&shared.of_wave[0][0])[i * kThreads + thread] = 0;
    }
    const bool taken = expert != kNoExpert;
    const u64 same = lanes_of_same<expert_bits()>(expert, lanes_where(taken));
    const u32 below = count_below(same);
    __syncthreads();
    if (taken && below == 0) {
        shared.of_wave[wave][expert] = count_lanes(same);
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < kLaneExperts; ++i) {
        const u32 of_expert = i * kThreads + thread;
        u32 sum = 0;
#pragma unroll
        for (u32 other = 0; other < kWaves; ++other) {
            sum += shared.of_wave[other][of_expert];
        }
        shared.experts.pairs[of_expert] = sum;
    }
    __syncthreads();
    const u32 blocks = shared.experts.number();
    __syncthreads();
    u32 row = kNoRow;
    if (taken) {
        row = shared.experts.first[expert] * kBlockM + below;
#pragma unroll
        for (u32 other = 0; other + 1 < kWaves; ++other) {
            row += other < wave ? shared.of_wave[other][expert] : 0;
        }
    }
    return {expert, row, blocks};
}

KILN_DEVICE void write_experts(const Arguments& arguments, Shared& shared, u32 group) {
    const Counted own = count(arguments, shared);
    if (own.row != kNoRow && own.expert / kPaddedTogether == group) {
        write_pair(arguments, threadIdx.x, own.expert, own.row);
    }
    write_padding(arguments, group, shared.experts.pairs, shared.experts.first);
    if (group == 0 && threadIdx.x == 0) {
        write_num_valid(arguments, own.blocks);
    }
}

KILN_DEVICE void do_piece(const Arguments& arguments, Shared& shared, const Piece& piece) {
    if constexpr (kQuantised) {
        const u32x4 elements = load(arguments, piece);
        zero(arguments, piece);
        shared.row_of_pair[threadIdx.x] = count(arguments, shared).row;
        __syncthreads();
        quantise(arguments, piece, elements,
                 [&](u32 slot) { return shared.row_of_pair[piece.token * kSlots + slot]; });
    } else if constexpr (kHidden > 0) {
        zero(arguments, piece);
    }
}

}  // namespace
}  // namespace kiln

extern "C" __global__ __launch_bounds__(kiln::moe_sort::kThreads) void KILN_KERNEL_NAME(
    KILN_MOE_SORT_PARAMETERS) {
    using namespace kiln;
    __shared__ Shared shared;
    const Arguments arguments = KILN_MOE_SORT_ARGUMENTS;
    if (blockIdx.x < kPaddingGroups) {
        write_experts(arguments, shared, blockIdx.x);
    } else {
        do_piece(arguments, shared, Piece(blockIdx.x - kPaddingGroups, threadIdx.x));
    }
}
