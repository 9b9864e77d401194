// What `router` must compute, written from its definition and independent of the kernel: float64 logits,
// rounded to bf16 once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kiln::operators {

// The arrays of one case in host memory, as the kernel takes them.
struct RouterArrays {
    std::int64_t m = 0, hidden = 0, experts = 0, top_k = 0, shared = 0, ldx = 0;
    float scale = 0;
    std::vector<std::uint16_t> x;            // bf16 bits, [m, ldx]
    std::vector<std::uint16_t> gate;         // bf16 bits, [experts, hidden]
    std::vector<std::uint16_t> shared_gate;  // bf16 bits, [hidden]; empty without a shared expert

    [[nodiscard]] std::int64_t columns() const { return top_k + shared; }
};

// Inputs that reach into every corner. Of the tokens, in turn: ordinary ones (x = randn, logits of a spread
// of about 3); many logits equal, all of them exact in float32; as good as all equal; every logit +0 or -0;
// -infinity among the logits; +infinity, -infinity and NaN; only NaN. An ordinary token is drawn again where
// a sum in float32 could round another way than its float64 one, so the choice of experts is beyond doubt.
// Tokens do not depend on m, so the case with fewer is the head of the case with more.
[[nodiscard]] RouterArrays make_router_case(std::int64_t m, std::int64_t hidden, std::int64_t experts,
                                            std::int64_t top_k, std::int64_t shared, std::uint64_t seed);

struct RouterResults {
    std::vector<std::int32_t> ids;  // [m, columns]
    std::vector<double> weights;    // [m, columns]
};
[[nodiscard]] RouterResults router_reference(const RouterArrays& arrays);

struct RouterComparison {
    std::size_t results = 0;
    std::size_t wrong_ids = 0;
    std::size_t too_far = 0;  // weights that differ by more than the bound
    // The largest difference of a weight, as a share of the larger of 1 and the weight; infinite where an id
    // is wrong or only one of both is NaN.
    double error = 0;
    static constexpr double kBound = 1e-5;
    [[nodiscard]] bool passed() const { return error <= kBound; }
};

// The first m rows of `columns` results.
[[nodiscard]] RouterComparison compare_router(std::span<const std::int32_t> ids,
                                              std::span<const float> weights, const RouterResults& reference,
                                              std::int64_t m, std::int64_t columns);

}  // namespace kiln::operators
