// What `linear` must compute, written from its definition and independent of the kernel: float64, rounded
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kiln::operators {

// The arrays of one case in host memory, as the kernel takes them.
struct LinearArrays {
    std::int64_t m = 0, n = 0, k = 0, ldx = 0;
    std::vector<std::uint16_t> x;  // bf16 bits, [m, ldx]
    std::vector<std::uint8_t> w;   // e4m3fn, preshuffled, [n, k]
    std::vector<float> w_scale;    // [ceil(n/128), k/128]
};

// Inputs that reach into every corner: x = randn * 8 * rand per 128-group, zero rows, zero groups, values
// near the ends of bf16; every e4m3fn code but NaN among the weights; scales from 2^-18 to 2^-15. Rows do not
// depend on m, so the case with fewer rows is the head of the case with more.
[[nodiscard]] LinearArrays make_linear_case(std::int64_t m, std::int64_t n, std::int64_t k,
                                            std::uint64_t seed);
// Ordinary rows alone, without gaps between them, as a model's step has them: for timing.
[[nodiscard]] LinearArrays make_typical_linear_case(std::int64_t m, std::int64_t n, std::int64_t k,
                                                    std::uint64_t seed);

// Each output before its rounding to bf16, [m, n]. On all cores of the process.
[[nodiscard]] std::vector<double> linear_reference(const LinearArrays& arrays);

struct LinearComparison {
    std::size_t outputs = 0;
    std::size_t differing = 0;  // other bf16 bits than the reference's (both NaN counts as equal)
    std::size_t too_far = 0;  // by more than one bf16 unit and more than 1e-6 of the row's largest magnitude
    double worst_units = 0;   // largest difference in bf16 units of the reference
    double error = 0;         // share of outputs that differ; infinite when one is too far
    static constexpr double kBound = 2e-3;
    [[nodiscard]] bool passed() const { return error <= kBound; }
};

// `out` is bf16 bits [m, n]; `reference` at least its size, row n long.
[[nodiscard]] LinearComparison compare_linear(std::span<const std::uint16_t> out,
                                              std::span<const double> reference, std::int64_t m,
                                              std::int64_t n);

}  // namespace kiln::operators
