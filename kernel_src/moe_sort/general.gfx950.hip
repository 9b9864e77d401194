// moe_sort/general for gfx950: any number of pairs, in two launches, three with the quantiser. Waves take
// runs of consecutive pairs, so that a pair's rank among its expert's is what runs before hold, and what its
// own run holds before it.
//
//   count     each wave counts the experts of its run; the last work-group to finish adds up over the runs,
//             gives each expert its blocks and resets the counter that elected it. Without the quantiser
//             further work-groups zero moe_buf.
//   place     each wave writes the rows of its run; further work-groups the rows without a pair.
//   quantise  a piece of a token each.
//
// A kernel begins with all that the one before wrote; only within count do work-groups meet.

#include "constants.h"
#include "device/gfx950/cross_lane.h"
#include "device/gfx950/election.h"
#include "device/gfx950/vectors.h"
#include "device/types.h"
#include "moe_sort/arguments.h"
#include "moe_sort/experts.h"
#include "moe_sort/general_workspace.h"
#include "moe_sort/tokens.h"

namespace kiln {
namespace {

using namespace kiln::moe_sort;

constexpr u32 kRunGroups = kMostRuns / kWaves;  // work-groups that take runs

struct Workspace {
    u32* base;
    GeneralWorkspace layout;

    KILN_DEVICE explicit Workspace(const Arguments& arguments)
        : base(reinterpret_cast<u32*>(arguments.scratch)), layout{kExperts, arguments.m * kSlots} {}

    KILN_DEVICE u32* expert_pairs() const { return base + layout.expert_pairs(); }
    KILN_DEVICE u32* first_block() const { return base + layout.first_block(); }
    KILN_DEVICE u32* of_run(u32 run) const { return base + layout.of_run() + run * kExperts; }
    KILN_DEVICE u32* row_of_pair() const { return base + layout.row_of_pair(); }
};

// This wave's run; empty past the last one.
struct Run {
    u32 number;
    u32 begin;
    u32 end;

    KILN_DEVICE Run(u32 group, u32 pairs) : number(group * kWaves + uniform(threadIdx.x / kWaveLanes)) {
        const u32 length = run_pairs(pairs);
        begin = number * length < pairs ? number * length : pairs;
        end = pairs - begin < length ? pairs : begin + length;
    }
    KILN_DEVICE bool is_empty() const { return begin == end; }
};

// What a wave keeps of every expert, in LDS of its own: lanes of one wave need no barrier between them, but
// the compiler must keep the order.
using OfExperts = u32[kPaddedExperts];
KILN_DEVICE void keep_order() {
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
    __builtin_amdgcn_wave_barrier();
}

KILN_DEVICE void count_run(const Arguments& arguments, const Workspace& workspace, const Run& run,
                           OfExperts& counts) {
    const u32 lane = threadIdx.x % kWaveLanes;
    for (u32 expert = lane; expert < kExperts; expert += kWaveLanes) {
        counts[expert] = 0;
    }
    keep_order();
    for (u32 first = run.begin; first < run.end; first += kWaveLanes) {
        const u32 expert = expert_of(arguments, first + lane, run.end);
        if (expert != kNoExpert) {
            __hip_atomic_fetch_add(&counts[expert], 1U, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
        }
    }
    keep_order();
    u32* const out = workspace.of_run(run.number);
    for (u32 expert = lane; expert < kExperts; expert += kWaveLanes) {
        out[expert] = counts[expert];
    }
}

// By the last work-group of count.
KILN_DEVICE void add_up(const Arguments& arguments, const Workspace& workspace, u32 runs,
                        ExpertBlocks& experts) {
    const u32 thread = threadIdx.x;
#pragma unroll
    for (u32 i = 0; i < kLaneExperts; ++i) {
        const u32 expert = i * kThreads + thread;
        u32 sum = 0;
        if (expert < kExperts) {
            u32* of_run = workspace.of_run(0) + expert;
#pragma unroll 8
            for (u32 run = 0; run < runs; ++run) {
                const u32 pairs = *of_run;
                *of_run = sum;
                sum += pairs;
                of_run += kExperts;
            }
            workspace.expert_pairs()[expert] = sum;
        }
        experts.pairs[expert] = sum;
    }
    __syncthreads();
    const u32 blocks = experts.number();
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < kLaneExperts; ++i) {
        const u32 expert = i * kThreads + thread;
        if (expert < kExperts) {
            workspace.first_block()[expert] = experts.first[expert];
        }
    }
    if (thread == 0) {
        write_num_valid(arguments, blocks);
    }
}

KILN_DEVICE void place_run(const Arguments& arguments, const Workspace& workspace, const Run& run,
                           OfExperts& next_row) {
    const u32 lane = threadIdx.x % kWaveLanes;
    for (u32 expert = lane; expert < kExperts; expert += kWaveLanes) {
        next_row[expert] = workspace.first_block()[expert] * kBlockM + workspace.of_run(run.number)[expert];
    }
    for (u32 first = run.begin; first < run.end; first += kWaveLanes) {
        keep_order();
        const u32 pair = first + lane;
        const u32 expert = expert_of(arguments, pair, run.end);
        const bool taken = expert != kNoExpert;
        const u64 same = lanes_of_same<expert_bits()>(expert, lanes_where(taken));
        const u32 below = count_below(same);
        u32 row = kNoRow;
        if (taken) {
            const u32 next = next_row[expert];
            row = next + below;
            write_pair(arguments, pair, expert, row);
        }
        if (kQuantised && pair < run.end) {
            workspace.row_of_pair()[pair] = row;
        }
        keep_order();
        if (taken && below == 0) {
            next_row[expert] = row + count_lanes(same);
        }
    }
}

template <class DoPiece>
KILN_DEVICE void stride_over_pieces(const Arguments& arguments, u32 first_group, DoPiece do_piece) {
    const u32 pieces = arguments.m * kPieces;
    for (u32 number = blockIdx.x - first_group; number < pieces; number += kMostPieceGroups) {
        do_piece(Piece(number, threadIdx.x));
    }
}

}  // namespace
}  // namespace kiln

extern "C" __global__ __launch_bounds__(kiln::moe_sort::kThreads) void KILN_KERNEL_NAME_COUNT(
    KILN_MOE_SORT_PARAMETERS) {
    using namespace kiln;
    union Shared {
        OfExperts counts[kWaves];
        ExpertBlocks experts;
    };
    __shared__ Shared shared;
    __shared__ bool is_last;
    const Arguments arguments = KILN_MOE_SORT_ARGUMENTS;
    if (blockIdx.x >= kRunGroups) {
        if constexpr (kHidden > 0 && !kQuantised) {
            stride_over_pieces(arguments, kRunGroups, [&](const Piece& piece) { zero(arguments, piece); });
        }
        return;
    }
    const u32 pairs = arguments.m * kSlots;
    const u32 runs = num_runs(pairs);
    const u32 groups = (runs + kWaves - 1) / kWaves;
    if (blockIdx.x >= groups) {
        return;
    }
    const Workspace workspace(arguments);
    const Run run(blockIdx.x, pairs);
    if (!run.is_empty()) {
        count_run(arguments, workspace, run, shared.counts[threadIdx.x / kWaveLanes]);
    }
    release_to_device();
    __syncthreads();
    if (threadIdx.x == 0) {
        is_last = SmallElection(arguments.zeroed).arrive(groups);
    }
    __syncthreads();
    if (is_last) {
        acquire_from_device();
        add_up(arguments, workspace, runs, shared.experts);
    }
}

extern "C" __global__ __launch_bounds__(kiln::moe_sort::kThreads) void KILN_KERNEL_NAME_PLACE(
    KILN_MOE_SORT_PARAMETERS) {
    using namespace kiln;
    __shared__ OfExperts next_row[kWaves];
    const Arguments arguments = KILN_MOE_SORT_ARGUMENTS;
    const Workspace workspace(arguments);
    if (blockIdx.x < kPaddingGroups) {
        write_padding(arguments, blockIdx.x, workspace.expert_pairs(), workspace.first_block());
        return;
    }
    const Run run(blockIdx.x - kPaddingGroups, arguments.m * kSlots);
    if (!run.is_empty()) {
        place_run(arguments, workspace, run, next_row[threadIdx.x / kWaveLanes]);
    }
}

#if defined(KILN_KERNEL_NAME_QUANTISE)
extern "C" __global__ __launch_bounds__(kiln::moe_sort::kThreads) void KILN_KERNEL_NAME_QUANTISE(
    KILN_MOE_SORT_PARAMETERS) {
    using namespace kiln;
    const Arguments arguments = KILN_MOE_SORT_ARGUMENTS;
    const u32* const row_of_pair = Workspace(arguments).row_of_pair();
    stride_over_pieces(arguments, 0, [&](const Piece& piece) {
        const u32x4 elements = load(arguments, piece);
        zero(arguments, piece);
        quantise(arguments, piece, elements,
                 [&](u32 slot) { return row_of_pair[piece.token * kSlots + slot]; });
    });
}
#endif
