// What the references of fused_moe have in common: the weights of an expert as numbers, and work shared out
// over the cores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/formats/row_order.hpp"
#include "runtime/operators/fused_moe_reference.hpp"

namespace kiln::operators {

// Runs work(i) for i below count, on all cores of the process.
void share_out(std::size_t count, const std::function<void(std::size_t)>& work);

// A row of preshuffled weights [rows, k], dequantised: exact in float32 for mxfp4, in float64 for both.
class WeightDecoder {
  public:
    [[nodiscard]] static WeightDecoder w13(const FusedMoeProblem& problem, const ExpertWeights& expert);
    [[nodiscard]] static WeightDecoder w2(const FusedMoeProblem& problem, const ExpertWeights& expert);

    // `row` as the operator counts: of w13 gate rows first. Requires as many numbers as a row has.
    void operator()(std::size_t row, std::span<double> out) const;
    // Requires mxfp4.
    void operator()(std::size_t row, std::span<float> out) const;

  private:
    WeightDecoder(bool fp8, formats::RowOrder order, std::span<const std::uint8_t> codes,
                  std::span<const std::uint8_t> scales, std::size_t k)
        : fp8_(fp8), order_(order), codes_(codes), scales_(scales), k_(k) {}

    void decode_fp8(std::size_t row, std::span<double> out) const;
    template <class Number>
    void decode_mxfp4(std::size_t row, std::span<Number> out) const;

    bool fp8_;
    formats::RowOrder order_;
    std::span<const std::uint8_t> codes_, scales_;
    std::size_t k_;
};

// The pairs (token, slot) of each expert that the ids of the first m tokens name, by expert.
struct ChosenExpert {
    const ExpertWeights* weights = nullptr;
    std::vector<std::size_t> pairs;
};
[[nodiscard]] std::vector<ChosenExpert> chosen_experts(const FusedMoeArrays& arrays, std::size_t m);

}  // namespace kiln::operators
