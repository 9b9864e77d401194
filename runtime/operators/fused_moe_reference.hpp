// What `fused_moe` must compute, written from its definition and independent of the kernels: float64 on
// dequantised weights, rounded to bf16 where the operator rounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "runtime/formats/row_order.hpp"
#include "runtime/operators/fused_moe.hpp"

namespace kiln::operators {

// One expert's part of each array of weights, as the kernels take it. It is contiguous there: 2 *
// intermediate and hidden are multiples of 32, so a preshuffled scale shares no block of rows with another
// expert's.
// In the order that the problem's gate_up asks for: w13_order().
struct ExpertWeights {
    std::vector<std::uint8_t> w13, w13_scale;  // L1 [2I, KB]; L3 of [2I, H/32], or float32 [2I/128, H/128]
    std::vector<std::uint8_t> w2, w2_scale;    // L1 [H, KB]; L3 of [H, I/32], or float32 [H/128, I/128]
};

// The arrays of one case in host memory. Of the weights there is only what the ids name: a model has hundreds
// of experts, and a launch must not read the others.
struct FusedMoeArrays {
    FusedMoeProblem problem;
    std::uint64_t seed = 0;
    std::int64_t m = 0, ldx = 0;
    std::vector<std::uint16_t> x;   // bf16 bits, [m, ldx]
    std::vector<std::int32_t> ids;  // [m, slots]
    std::vector<float> weights;     // [m, slots]; NaN where the id names no expert
    std::map<std::int32_t, ExpertWeights> experts;
    // Not 0: experts have the same weights where their ids have the same remainder by it, and of those there
    // is the first.
    std::int32_t distinct_experts = 0;

    // Null where the id names no expert.
    [[nodiscard]] const ExpertWeights* weights_of(std::int32_t id) const;
};

// Bytes of the arrays of all experts, as the kernels take them.
struct FusedMoeBytes {
    std::size_t w13, w13_scale, w2, w2_scale;  // of all experts, what pads included
    std::size_t expert_w13, expert_w13_scale, expert_w2, expert_w2_scale;  // of each
};
[[nodiscard]] FusedMoeBytes fused_moe_bytes(const FusedMoeProblem& problem);
// How the rows of w13 and of its scales lie.
[[nodiscard]] formats::RowOrder w13_order(const FusedMoeProblem& problem);

// Inputs that reach into every corner: tokens that share experts and tokens that do not, the last expert in
// the last slot of most tokens (a shared expert), one expert in several slots of a token, padding (-1), a
// token of padding alone, ids outside the experts; zero rows of x; every code of the weights' format (but
// NaN), scales that differ from block to block, among mxfp4's the code 0. Rows and the weights of an expert
// do not depend on m, so the case with fewer rows is the head of the case with more. Token 0, alone at M = 1,
// is an ordinary one.
[[nodiscard]] FusedMoeArrays make_fused_moe_case(const FusedMoeProblem& problem, std::int64_t m,
                                                 std::uint64_t seed);
// What a model's step is like, for what a launch takes: each token chooses its experts anew, every one as
// likely as any other and none twice; where their number is odd, the last one is shared, and in the last slot
// of every token. Hundreds of experts are chosen, so few have weights of their own: no launch takes longer by
// the values. Otherwise as above.
[[nodiscard]] FusedMoeArrays make_typical_fused_moe_case(const FusedMoeProblem& problem, std::int64_t m,
                                                         std::uint64_t seed);
// Makes the weights of every expert that the ids name and that is not there yet; for a test that changed ids.
void add_experts(FusedMoeArrays& arrays);

// bf16 bits [m, hidden] for the first m tokens. On all cores of the process.
[[nodiscard]] std::vector<std::uint16_t> fused_moe_reference(const FusedMoeArrays& arrays, std::int64_t m);
[[nodiscard]] inline std::vector<std::uint16_t> fused_moe_reference(const FusedMoeArrays& arrays) {
    return fused_moe_reference(arrays, arrays.m);
}
// Whether an id of the first m tokens is neither -1 nor an expert's.
[[nodiscard]] bool has_invalid_id(const FusedMoeArrays& arrays, std::int64_t m);

struct FusedMoeComparison {
    std::size_t outputs = 0;
    std::size_t differing = 0;  // other bf16 bits than the reference's
    double error = 0;           // relative L2 of all tokens; infinite where one is not finite
    // Of the token where it is largest; infinite where that should be zero. Wider, since one h of a large
    // weight that rounds the other way shows more among fewer outputs.
    double token_error = 0;
    std::int64_t worst_token = 0;
    static constexpr double kBound = 5e-4;
    static constexpr double kTokenBound = 2e-3;
    [[nodiscard]] bool passed() const { return error < kBound && token_error < kTokenBound; }
};

// Both are bf16 bits [m, hidden], `reference` at least that.
[[nodiscard]] FusedMoeComparison compare_fused_moe(std::span<const std::uint16_t> out,
                                                   std::span<const std::uint16_t> reference, std::int64_t m,
                                                   std::int64_t hidden);

}  // namespace kiln::operators
