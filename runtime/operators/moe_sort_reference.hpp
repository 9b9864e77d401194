// What `moe_sort` must give, written from its definition and independent of the kernels, and inputs that
// reach into its corners.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/operators/moe_sort.hpp"

namespace kiln::operators {

// The inputs of one case in host memory.
struct MoeSortArrays {
    MoeSortProblem problem;
    std::int64_t m = 0;
    std::int64_t ldx = 0;           // elements between rows of x
    std::vector<std::int32_t> ids;  // [m, slots]
    std::vector<float> weights;     // [m, slots]
    std::vector<std::uint16_t> x;   // bf16 bits, [m, ldx]; empty without the quantiser
};

// Every array that a launch writes, at the sizes that the public header states.
struct MoeSortResult {
    std::vector<std::int32_t> sorted_ids;
    std::vector<float> sorted_weights;
    std::vector<std::int32_t> sorted_expert_ids;
    std::vector<std::int32_t> num_valid;  // 2
    std::vector<std::uint8_t> moe_buf;    // bytes
    std::vector<std::uint8_t> q;
    std::vector<std::uint8_t> q_scale;
};

// How the experts of a case are drawn. All give weights that tell pairs apart.
enum class MoeSortDraw {
    mixed,      // most tokens have distinct experts, as from top-k; some have one expert in every slot, some
                // ids are -1 or out of range
    distinct,   // distinct experts for each token
    one_expert  // every pair on the expert in the middle
};

// With the quantiser x = randn * 8 * rand per group of 32, with zero groups, groups near the ends of bf16 and
// around the floor of the largest magnitude. Tokens do not depend on m, so the case with fewer is the head of
// the case with more.
[[nodiscard]] MoeSortArrays make_moe_sort_case(const MoeSortProblem& problem, std::int64_t m,
                                               std::uint64_t seed, MoeSortDraw draw = MoeSortDraw::mixed);
// The first m tokens.
[[nodiscard]] MoeSortArrays head(const MoeSortArrays& arrays, std::int64_t m);

// Arrays full of `filler`, and in it what a launch must write: what it must leave alone keeps the filler.
[[nodiscard]] MoeSortResult moe_sort_reference(const MoeSortArrays& arrays, std::uint8_t filler);
// The arrays alone, full of it.
[[nodiscard]] MoeSortResult filled_moe_sort_result(const MoeSortProblem& problem, std::int64_t m,
                                                   std::uint8_t filler);

struct MoeSortComparison {
    std::size_t differing = 0;  // elements, over all arrays
    std::string remark;         // the first one of each array that has any; empty where all is well
    [[nodiscard]] bool passed() const { return differing == 0; }
};

// Bit for bit, but for the bytes of a group whose scale is NaN, which mean nothing.
[[nodiscard]] MoeSortComparison compare_moe_sort(const MoeSortArrays& arrays, const MoeSortResult& expected,
                                                 const MoeSortResult& found);

}  // namespace kiln::operators
