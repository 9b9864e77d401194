#include "runtime/operators/fused_moe_reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/formats/bf16.hpp"
#include "runtime/operators/dot.hpp"
#include "runtime/operators/fused_moe_decoder.hpp"

namespace kiln::operators {

namespace {

std::size_t as_size(std::int64_t value) {
    return static_cast<std::size_t>(value);
}

double round_to_bf16(double value) {
    return formats::bf16_to_float(formats::double_to_bf16(value));
}

std::vector<double> activations(const FusedMoeArrays& arrays, std::size_t m) {
    const auto hidden = as_size(arrays.problem.hidden);
    std::vector<double> x(m * hidden);
    for (std::size_t token = 0; token < m; ++token) {
        for (std::size_t k = 0; k < hidden; ++k) {
            x[token * hidden + k] = formats::bf16_to_float(arrays.x[token * as_size(arrays.ldx) + k]);
        }
    }
    return x;
}

class Evaluation {
  public:
    Evaluation(const FusedMoeArrays& arrays, std::size_t m)
        : arrays_(arrays),
          m_(m),
          x_(activations(arrays, m)),
          dots_(m * as_size(arrays.problem.slots * arrays.problem.hidden)),
          chosen_(chosen_experts(arrays, m)) {}

    std::vector<std::uint16_t> run() {
        share_out(chosen_.size(), [this](std::size_t i) { evaluate(chosen_[i]); });
        return combine();
    }

  private:
    // The products of the second stage, unweighted, into dots_.
    void evaluate(const ChosenExpert& expert) {
        const auto hidden = as_size(arrays_.problem.hidden);
        const auto intermediate = as_size(arrays_.problem.intermediate);
        const WeightDecoder w13 = WeightDecoder::w13(arrays_.problem, *expert.weights);
        const WeightDecoder w2 = WeightDecoder::w2(arrays_.problem, *expert.weights);
        std::vector<double> h(expert.pairs.size() * intermediate), gate(hidden), up(hidden);
        for (std::size_t column = 0; column < intermediate; ++column) {
            w13(column, std::span(gate));
            w13(intermediate + column, std::span(up));
            for (std::size_t i = 0; i < expert.pairs.size(); ++i) {
                const std::size_t token = expert.pairs[i] / as_size(arrays_.problem.slots);
                const std::span<const double> row(&x_[token * hidden], hidden);
                const double g = dot(gate, row);
                h[i * intermediate + column] = round_to_bf16(g / (1.0 + std::exp(-g)) * dot(up, row));
            }
        }
        std::vector<double> down(intermediate);
        for (std::size_t n = 0; n < hidden; ++n) {
            w2(n, std::span(down));
            for (std::size_t i = 0; i < expert.pairs.size(); ++i) {
                dots_[expert.pairs[i] * hidden + n] =
                    dot(down, std::span<const double>(&h[i * intermediate], intermediate));
            }
        }
    }

    [[nodiscard]] std::vector<std::uint16_t> combine() const {
        const auto hidden = as_size(arrays_.problem.hidden);
        const auto slots = as_size(arrays_.problem.slots);
        std::vector<double> sums(m_ * hidden);
        for (const ChosenExpert& expert : chosen_) {
            for (const std::size_t pair : expert.pairs) {
                const double weight = arrays_.weights[pair];
                for (std::size_t n = 0; n < hidden; ++n) {
                    sums[pair / slots * hidden + n] += weight * dots_[pair * hidden + n];
                }
            }
        }
        std::vector<std::uint16_t> out(sums.size());
        std::ranges::transform(sums, out.begin(), formats::double_to_bf16);
        return out;
    }

    const FusedMoeArrays& arrays_;
    const std::size_t m_;
    const std::vector<double> x_;  // [m, hidden]
    std::vector<double> dots_;     // [pair, hidden]
    const std::vector<ChosenExpert> chosen_;
};

}  // namespace

std::vector<std::uint16_t> fused_moe_reference(const FusedMoeArrays& arrays, std::int64_t m) {
    return Evaluation(arrays, as_size(m)).run();
}

bool has_invalid_id(const FusedMoeArrays& arrays, std::int64_t m) {
    const std::span<const std::int32_t> ids(arrays.ids.data(), as_size(m * arrays.problem.slots));
    return std::ranges::any_of(ids, [&](std::int32_t id) { return id < -1 || id >= arrays.problem.experts; });
}

FusedMoeComparison compare_fused_moe(std::span<const std::uint16_t> out,
                                     std::span<const std::uint16_t> reference, std::int64_t m,
                                     std::int64_t hidden) {
    const auto relative = [](double gap, double size) {
        const double error = gap == 0 ? 0.0 : std::sqrt(gap / size);
        return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
    };
    FusedMoeComparison result;
    const std::size_t columns = as_size(hidden);
    double whole_gap = 0;
    double whole_size = 0;
    for (std::int64_t token = 0; token < m; ++token) {
        double gap = 0;
        double size = 0;
        for (std::size_t i = as_size(token) * columns; i < as_size(token + 1) * columns; ++i) {
            const double found = formats::bf16_to_float(out[i]);
            const double wanted = formats::bf16_to_float(reference[i]);
            ++result.outputs;
            result.differing += found == wanted ? 0 : 1;
            gap += (found - wanted) * (found - wanted);
            size += wanted * wanted;
        }
        if (const double error = relative(gap, size); error > result.token_error) {
            result.token_error = error;
            result.worst_token = token;
        }
        whole_gap += gap;
        whole_size += size;
    }
    result.error = relative(whole_gap, whole_size);
    return result;
}

}  // namespace kiln::operators
