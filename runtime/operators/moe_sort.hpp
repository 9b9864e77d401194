// The operator `moe_sort`: its problem, the arguments of its kernels, and the checks of a launch.
//
// What it computes, the layouts and the meaning of every field stand in the public header (kiln/moe_sort.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kiln/kiln.h"
#include "runtime/formats/scale_layout.hpp"
#include "runtime/operators/kernel_launch.hpp"
#include "runtime/operators/launch_checks.hpp"

namespace kiln::operators {

class Operator;

// What a launch and the templates look at. Everything else was judged when the problem was asked for.
struct MoeSortProblem {
    std::int64_t experts = 0;
    std::int64_t slots = 0;
    std::int64_t block_m = 0;
    std::int64_t hidden = 0;  // 0: no moe_buf
    bool quantised = false;
};

// An entry of the result has 24 bits for its token, and for M where it is padding.
inline constexpr std::int64_t kMoeSortMostTokens = (std::int64_t{1} << 24) - 1;

inline constexpr std::int64_t kMoeSortMostExperts = 1024;
inline constexpr std::int64_t kMoeSortMostSlots = 16;
inline constexpr std::int64_t kMoeSortMostHidden = std::int64_t{1} << 18;

[[nodiscard]] bool has_served_dimensions(const MoeSortProblem& problem);

// Entries of sorted_ids and sorted_weights, entries of sorted_expert_ids, bytes of q_scale: what the worst
// ids can need.
[[nodiscard]] constexpr std::int64_t moe_sort_rows(const MoeSortProblem& problem, std::int64_t m) {
    return m * problem.slots + problem.experts * problem.block_m - std::min(problem.slots, problem.experts);
}
[[nodiscard]] constexpr std::int64_t moe_sort_blocks(const MoeSortProblem& problem, std::int64_t m) {
    return (moe_sort_rows(problem, m) + problem.block_m - 1) / problem.block_m;
}
[[nodiscard]] constexpr std::int64_t moe_sort_scale_bytes(const MoeSortProblem& problem, std::int64_t m) {
    return problem.quantised ? static_cast<std::int64_t>(
                                   formats::l3_bytes(static_cast<std::size_t>(moe_sort_rows(problem, m)),
                                                     static_cast<std::size_t>(problem.hidden / 32)))
                             : 0;
}

// The kernels' explicit arguments, naturally aligned: what the code object's metadata must say too.
struct MoeSortKernargs {
    const std::int32_t* ids;
    const float* weights;
    const void* x;
    std::int32_t* sorted_ids;
    float* sorted_weights;
    std::int32_t* sorted_expert_ids;
    std::int32_t* num_valid;
    void* moe_buf;
    void* q;
    void* q_scale;
    void* zeroed;
    void* scratch;
    std::int32_t m;
    std::int32_t ldx;  // elements
};
static_assert(sizeof(MoeSortKernargs) == 104);

// What a launch may still decline for, M, workspace and the device aside; 0 when nothing.
[[nodiscard]] inline int check_launch(const MoeSortProblem& problem, std::int64_t /*m*/,
                                      const kiln_moe_sort_args& args) {
    const bool zeroes = problem.hidden > 0;
    const bool quantises = problem.quantised;
    if (args.ids == nullptr || args.weights == nullptr || args.sorted_ids == nullptr ||
        args.sorted_weights == nullptr || args.sorted_expert_ids == nullptr || args.num_valid == nullptr ||
        (zeroes && args.moe_buf == nullptr) ||
        (quantises && (args.x == nullptr || args.q == nullptr || args.q_scale == nullptr))) {
        return KILN_DECLINE_NULL_POINTER;
    }
    if (is_misaligned(args.ids, 4)) {
        return KILN_DECLINE_IDS_ALIGNMENT;
    }
    if (is_misaligned(args.weights, 4)) {
        return KILN_DECLINE_WEIGHTS_ALIGNMENT;
    }
    if (is_misaligned(args.sorted_ids, 16) || is_misaligned(args.sorted_weights, 16) ||
        is_misaligned(args.sorted_expert_ids, 4) || is_misaligned(args.num_valid, 4)) {
        return KILN_DECLINE_SORTED_ALIGNMENT;
    }
    if (zeroes && is_misaligned(args.moe_buf, 16)) {
        return KILN_DECLINE_MOE_BUF_ALIGNMENT;
    }
    if (quantises) {
        if (const int decline = check_rows(args.x, args.ldx, problem.hidden); decline != KILN_OK) {
            return decline;
        }
        if (is_misaligned(args.q, 16)) {
            return KILN_DECLINE_Q_ALIGNMENT;
        }
        if (is_misaligned(args.q_scale, 4)) {
            return KILN_DECLINE_Q_SCALE_ALIGNMENT;
        }
    }
    return KILN_OK;
}

[[nodiscard]] inline MoeSortKernargs pack(const MoeSortProblem& problem, std::int64_t m,
                                          const kiln_moe_sort_args& args, const Workspace& workspace) {
    return {args.ids,
            args.weights,
            args.x,
            args.sorted_ids,
            args.sorted_weights,
            args.sorted_expert_ids,
            args.num_valid,
            args.moe_buf,
            args.q,
            args.q_scale,
            workspace.zeroed,
            workspace.scratch,
            static_cast<std::int32_t>(m),
            problem.quantised ? static_cast<std::int32_t>(args.ldx) : 0};
}

// The same as a list.
[[nodiscard]] const KernargBlock& moe_sort_kernargs();

[[nodiscard]] const Operator& moe_sort();

}  // namespace kiln::operators
