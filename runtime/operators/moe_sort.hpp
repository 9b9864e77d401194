// The operator `moe_sort`: its problem, the arguments of its kernels, and the checks of a launch.
//
// What it computes, the layouts and the meaning of every field stand in the public header (kiln/moe_sort.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kiln/kiln.h"

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

// Entries of sorted_ids and sorted_weights, and of sorted_expert_ids: what the worst ids can need.
[[nodiscard]] constexpr std::int64_t moe_sort_capacity(const MoeSortProblem& problem, std::int64_t m) {
    return m * problem.slots + problem.experts * problem.block_m - std::min(problem.slots, problem.experts);
}
[[nodiscard]] constexpr std::int64_t moe_sort_blocks(const MoeSortProblem& problem, std::int64_t m) {
    return (moe_sort_capacity(problem, m) + problem.block_m - 1) / problem.block_m;
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

[[nodiscard]] const Operator& moe_sort();

}  // namespace kiln::operators
