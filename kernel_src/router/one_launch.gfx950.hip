// router/one_launch for gfx950: gate product, softmax over the best k, and the shared expert, in one launch.
//
// A work-group computes kRows rows of the gate (routed experts, then the shared one) for all tokens; its
// waves split the hidden dimension and add their sums up through LDS. It publishes its logits in the scratch
// memory and arrives at an election; the work-group that arrives last selects, a wave for each token.
//
// Routed logits travel as 16 bits that order as the selection wants them (device/ordered.h); with the
// expert's number below they make a 32-bit key that no other expert of the token has, and the largest key is
// the next choice: the larger logit, of equal ones the lower number.

#include "constants.h"
#include "device/convert.h"
#include "device/gfx950/convert.h"
#include "device/gfx950/cross_lane.h"
#include "device/gfx950/dot.h"
#include "device/gfx950/election.h"
#include "device/gfx950/memory.h"
#include "device/gfx950/select.h"
#include "device/gfx950/sum.h"
#include "device/gfx950/vectors.h"
#include "device/ordered.h"
#include "device/types.h"

namespace kiln {
namespace {

using namespace kiln::device;
using namespace kiln::constants;

constexpr int kLoadElements = 8;  // bf16 in 16 bytes
constexpr int kGateRows = kExperts + kShared;
constexpr int kColumns = kTopK + kShared;  // of the results
constexpr int kWorkGroups = (kGateRows + kRows - 1) / kRows;
constexpr int kThreads = kWaves * kWaveLanes;
constexpr int kRowBytes = kHidden * static_cast<int>(sizeof(bf16_bits));
constexpr int kSteps = (kHidden / kLoadElements + kThreads - 1) / kThreads;
constexpr int kLogits = kRows * kMaxM;  // of a work-group

static_assert(kHidden >= 8 && kHidden % kLoadElements == 0, "loads of 16 bytes tile a row");
static_assert(kExperts >= 1 && kExperts <= 1024, "numbers of experts fit the keys, and keys the registers");
static_assert(kTopK >= 1 && kTopK <= 16 && kTopK <= kExperts, "the chosen fit a quarter of a wave");
static_assert(kShared == 0 || kShared == 1, "at most one shared expert");
static_assert(kWaves >= 1 && kWaves <= 16, "a work-group has at most 1024 work-items");
static_assert(kRows >= 1 && kMaxM >= 1 && kLogits <= kWaveLanes, "a lane publishes a logit");

// The scratch memory: what the work-groups publish.
struct Published {
    static constexpr int kPieces = (kExperts + kLoadElements - 1) / kLoadElements;

    ordered_bf16 routed[kMaxM][kPieces * kLoadElements];  // past the experts: kOrderedNothing
    f32 shared[kMaxM];
};

using WorkGroupSum = LaneSums<kWaves, kLogits>;

// The logits of the work-group's rows, row + kRows * token: lane i of the first wave ends with that of index
// i.
KILN_DEVICE f32 gate_product(const bf16_bits* x, i32 ldx, i32 m, const bf16_bits* gate,
                             const bf16_bits* shared_gate, u32 first_row, WorkGroupSum& sums) {
    const u32 thread = threadIdx.x;
    u32x4 weights[kSteps][kRows];
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
        const u32 gate_row = first_row + row;
        const bool is_shared = kShared != 0 && gate_row == kExperts;
        const bf16_bits* start = is_shared ? shared_gate : gate + static_cast<u64>(gate_row) * kHidden;
        const Buffer buffer(start, gate_row < kGateRows ? kRowBytes : 0);
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
            weights[step][row] = buffer.load_streaming_16((step * kThreads + thread) * 16, 0);
        }
    }
    f32 logits[kLogits] = {};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
        for (int token = 0; token < kMaxM; ++token) {
            const Buffer buffer(x + static_cast<u64>(token) * static_cast<u32>(ldx),
                                token < m ? kRowBytes : 0);
            const u32x4 part = buffer.load_16((step * kThreads + thread) * 16, 0);
#pragma unroll
            for (int row = 0; row < kRows; ++row) {
                f32& logit = logits[token * kRows + row];
                logit = dot8_bf16(part, weights[step][row], logit);
            }
        }
    }
    return sums.total(logits, thread);
}

KILN_DEVICE void publish(f32 logit, u32 first_row, i32 m, Published& published, u32 lane) {
    const u32 token = lane / kRows;
    const u32 row = first_row + lane % kRows;
    if (lane < kLogits && static_cast<i32>(token) < m) {
        if (row < kExperts) {
            published.routed[token][row] = bf16_to_ordered(static_cast<bf16_bits>(pack_bf16(logit, 0.0F)));
        } else if (row < kGateRows) {
            published.shared[token] = logit;
        }
    }
    // What the pieces of 16 bytes have past the experts.
    constexpr u32 kRest = Published::kPieces * kLoadElements - kExperts;
    if constexpr (kRest > 0) {
        if (first_row / kRows == (kExperts - 1) / kRows) {
            for (u32 i = lane; i < kRest * static_cast<u32>(m); i += kWaveLanes) {
                published.routed[i / kRest][kExperts + i % kRest] = kOrderedNothing;
            }
        }
    }
}

// The choice for one token, by a wave.
KILN_DEVICE void choose(const Published& published, i32 token, f32 scale, i32* ids, f32* weights, u32 lane) {
    using Keys = WaveKeys<Published::kPieces>;
    Keys keys(published.routed[token], lane);
    // The sum over all experts cancels in the weights, but for a NaN in it.
    const bool has_nan = keys.any_nan();
    keys.sort();
    u32 chosen = 0;  // of lane i, choice i
    u32 first = 0;
#pragma unroll
    for (int choice = 0; choice < kTopK; ++choice) {
        const u32 best = keys.take_largest();
        first = choice == 0 ? best : first;
        chosen = lane == static_cast<u32>(choice) ? best : chosen;
    }
    const f32 logit = bf16_to_f32(ordered_to_bf16(static_cast<ordered_bf16>(chosen >> 16)));
    const f32 largest = bf16_to_f32(ordered_to_bf16(static_cast<ordered_bf16>(first >> 16)));
    const bool is_shared = kShared != 0 && lane == kTopK;
    f32 exponent = logit - largest;
    if (is_shared) {
        exponent = -published.shared[token];
    }
    const f32 power = __builtin_expf(exponent);
    const f32 sum = sum_in_quarter(lane < kTopK ? power : 0.0F);
    const f32 weight = (is_shared ? scale : power) / (is_shared ? 1.0F + power : sum);
    if (lane < kColumns) {
        const u32 place = static_cast<u32>(token) * kColumns + lane;
        ids[place] = is_shared ? kExperts : static_cast<i32>(Keys::number(chosen));
        weights[place] = has_nan && !is_shared ? __builtin_nanf("") : weight;
    }
}

}  // namespace
}  // namespace kiln

extern "C" __global__ void __launch_bounds__(kiln::kThreads)
    KILN_KERNEL_NAME(const kiln::device::bf16_bits* x, const kiln::device::bf16_bits* gate,
                     const kiln::device::bf16_bits* shared_gate, kiln::device::i32* ids,
                     kiln::device::f32* weights, void* counters, void* scratch, kiln::device::f32 scale,
                     kiln::device::i32 m, kiln::device::i32 ldx) {
    using namespace kiln;
    using namespace kiln::device;
    __shared__ WorkGroupSum sums;
    __shared__ u32 elected;
    Published& published = *static_cast<Published*>(scratch);
    const u32 lane = threadIdx.x % kWaveLanes;
    const u32 wave = uniform(threadIdx.x / kWaveLanes);
    const u32 first_row = blockIdx.x * kRows;

    const f32 logit = gate_product(x, ldx, m, gate, shared_gate, first_row, sums);
    if (wave == 0) {
        publish(logit, first_row, m, published, lane);
        release_to_device();
        if (lane == 0) {
            elected = Election<kWorkGroups>(counters).arrive(blockIdx.x) ? 1 : 0;
        }
    }
    __syncthreads();
    if (uniform(elected) == 0) {
        return;
    }
    acquire_from_device();
    for (i32 token = static_cast<i32>(wave); token < m; token += kWaves) {
        choose(published, token, scale, ids, weights, lane);
    }
}
