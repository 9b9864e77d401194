// What `fused_moe` must compute where its activations are quantised (the template fused_moe/mxmoe), written
// from the definition and independent of the kernels: what the matrix unit multiplies is exact in float32,
// sums are float64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/operators/fused_moe_reference.hpp"

namespace kiln::operators {

// Each [m, hidden], not rounded to bf16: where that is done, and how often, is the kernels' choice.
struct MxmoeReference {
    std::vector<float> quantised;  // x and h to mxfp4 without a floor, in groups of 32
    std::vector<float> kept;       // x quantised, h as it is
    // Of `quantised`, the sum of the magnitudes of its terms: what bounds the rounding of their sum.
    std::vector<float> magnitudes;
};

// Of the first m tokens. On all cores of the process. Requires a case of mxfp4 weights, hidden and
// intermediate multiples of 256.
[[nodiscard]] MxmoeReference mxmoe_reference(const FusedMoeArrays& arrays, std::int64_t m);
[[nodiscard]] inline MxmoeReference mxmoe_reference(const FusedMoeArrays& arrays) {
    return mxmoe_reference(arrays, arrays.m);
}

struct MxmoeComparison {
    std::size_t outputs = 0;
    double error = 0;  // relative L2 to `quantised`; infinite where a result is not finite
    // Of the token where it is largest; infinite where that should be zero. Wider: a sum that differs in its
    // last place may tip the scale of a group of h, which shows among the outputs of one token.
    double token_error = 0;
    std::int64_t worst_token = 0;
    double cosine_difference = 0;  // to `kept`: 1 - 2 * sum(xy) / sum(x^2 + y^2); 0 where both are zero
    static constexpr double kBound = 5e-3;
    static constexpr double kTokenBound = 4e-2;
    static constexpr double kCosineBound = 2e-2;
    [[nodiscard]] bool passed() const {
        return error < kBound && token_error < kTokenBound && cosine_difference < kCosineBound;
    }
};

// `out` is bf16 bits [m, hidden], the reference of at least as many tokens.
[[nodiscard]] MxmoeComparison compare_mxmoe(std::span<const std::uint16_t> out,
                                            const MxmoeReference& reference, std::int64_t m,
                                            std::int64_t hidden);

// How many of two results of the same kernels differ by more than their roundings to bf16 can: of each
// weighted term, of each of the partial sums, of the result. Requires the reference of at least as many
// tokens.
[[nodiscard]] std::size_t count_beyond_rounding(std::span<const std::uint16_t> out,
                                                std::span<const std::uint16_t> other,
                                                const MxmoeReference& reference, std::int64_t slots);

}  // namespace kiln::operators
