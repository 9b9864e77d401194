#include "runtime/operators/mxmoe_reference.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/formats/bf16.hpp"
#include "runtime/formats/e2m1.hpp"
#include "runtime/formats/e8m0.hpp"
#include "runtime/formats/mx.hpp"
#include "runtime/operators/fused_moe_decoder.hpp"

namespace kiln::operators {

namespace {

constexpr std::size_t kRows = 4;     // of weights that are multiplied by a row at once
constexpr std::size_t kBlock = 256;  // k that are summed in float32
constexpr std::size_t kLanes = 8;
constexpr std::size_t kChunk = 64;  // rows of weights that are one piece of work

std::size_t as_size(std::int64_t value) {
    return static_cast<std::size_t>(value);
}

// sums[r] = weights[r] . row, for kRows rows of weights that lie `k` apart. A lane of a block adds 32
// products of e2m1 values and powers of two in float32: what that loses lies far below what the kernels lose.
__attribute__((always_inline)) inline void multiply_body(const float* weights, const float* row,
                                                         std::size_t k, std::array<double, kRows>& sums) {
    using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));
    const auto load = [](const float* from, Floats& to) { std::memcpy(&to, from, sizeof(to)); };
    sums = {};
    for (std::size_t block = 0; block < k; block += kBlock) {
        Floats partial[kRows] = {};
        for (std::size_t at = block; at < block + kBlock; at += kLanes) {
            Floats x;
            load(row + at, x);
            for (std::size_t r = 0; r < kRows; ++r) {
                Floats w;
                load(weights + r * k + at, w);
                partial[r] += w * x;
            }
        }
        for (std::size_t r = 0; r < kRows; ++r) {
            for (std::size_t lane = 0; lane < kLanes; ++lane) {
                sums[r] += static_cast<double>(partial[r][lane]);
            }
        }
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void multiply_wide(const float* weights, const float* row, std::size_t k,
                                                       std::array<double, kRows>& sums) {
    multiply_body(weights, row, k, sums);
}
#endif

void multiply(const float* weights, const float* row, std::size_t k, std::array<double, kRows>& sums) {
#if defined(__x86_64__)
    static const bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (wide) {
        multiply_wide(weights, row, k, sums);
        return;
    }
#endif
    multiply_body(weights, row, k, sums);
}

// As the kernels quantise: the value that a group of 32 has afterwards.
void quantise_group(std::span<const float> values, std::span<float> quantised) {
    float amax = 0;
    for (const float value : values) {
        amax = std::max(amax, std::fabs(value));
    }
    const std::uint8_t scale = formats::mx_scale(amax, formats::MxType::e2m1, formats::AmaxFloor::none);
    const double size = std::ldexp(1.0, int{scale} - formats::kE8m0Bias);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto scaled = static_cast<float>(static_cast<double>(values[i]) / size);
        quantised[i] = static_cast<float>(
            static_cast<double>(formats::e2m1_to_float(formats::float_to_e2m1(scaled))) * size);
    }
}

void quantise(std::span<const float> values, std::span<float> quantised) {
    for (std::size_t first = 0; first < values.size(); first += formats::kMxGroup) {
        quantise_group(values.subspan(first, formats::kMxGroup), quantised.subspan(first, formats::kMxGroup));
    }
}

class Evaluation {
  public:
    Evaluation(const FusedMoeArrays& arrays, std::size_t m)
        : arrays_(arrays),
          m_(m),
          hidden_(as_size(arrays.problem.hidden)),
          intermediate_(as_size(arrays.problem.intermediate)),
          slots_(as_size(arrays.problem.slots)),
          chosen_(chosen_experts(arrays, m)),
          x_(m * hidden_),
          h_(m * slots_ * intermediate_),
          h_quantised_(h_.size()) {
        assert(!arrays.problem.fp8 && hidden_ % kBlock == 0 && intermediate_ % kBlock == 0);
    }

    MxmoeReference run() {
        quantise_x();
        const std::size_t pieces = intermediate_ / kChunk;
        share_out(chosen_.size() * pieces,
                  [&](std::size_t i) { make_h(chosen_[i / pieces], i % pieces * kChunk); });
        share_out(m_ * slots_, [&](std::size_t pair) {
            quantise(std::span(h_).subspan(pair * intermediate_, intermediate_),
                     std::span(h_quantised_).subspan(pair * intermediate_, intermediate_));
        });
        MxmoeReference result;
        for (auto* array : {&result.quantised, &result.kept, &result.magnitudes}) {
            array->resize(x_.size());
        }
        share_out(hidden_ / kChunk, [&](std::size_t i) { make_out(i * kChunk, result); });
        return result;
    }

  private:
    void quantise_x() {
        share_out(m_, [&](std::size_t token) {
            std::vector<float> row(hidden_);
            const std::span<const std::uint16_t> bits(&arrays_.x[token * as_size(arrays_.ldx)], hidden_);
            std::ranges::transform(bits, row.begin(), formats::bf16_to_float);
            quantise(row, std::span(x_).subspan(token * hidden_, hidden_));
        });
    }

    // Columns [first, first + kChunk) of h, of every pair of the expert.
    void make_h(const ChosenExpert& expert, std::size_t first) {
        constexpr std::size_t kColumns = kRows / 2;
        const WeightDecoder w13 = WeightDecoder::w13(arrays_.problem, *expert.weights);
        std::vector<float> weights(kRows * hidden_);
        std::array<double, kRows> sums{};
        for (std::size_t column = first; column < first + kChunk; column += kColumns) {
            for (std::size_t i = 0; i < kColumns; ++i) {
                w13(column + i, std::span(weights).subspan(2 * i * hidden_, hidden_));
                w13(intermediate_ + column + i, std::span(weights).subspan((2 * i + 1) * hidden_, hidden_));
            }
            for (const std::size_t pair : expert.pairs) {
                multiply(weights.data(), &x_[pair / slots_ * hidden_], hidden_, sums);
                for (std::size_t i = 0; i < kColumns; ++i) {
                    const double gate = sums[2 * i];
                    h_[pair * intermediate_ + column + i] =
                        static_cast<float>(gate / (1.0 + std::exp(-gate)) * sums[2 * i + 1]);
                }
            }
        }
    }

    // Columns [first, first + kChunk) of the result.
    void make_out(std::size_t first, MxmoeReference& result) const {
        // Of each token and column.
        struct Sums {
            double quantised = 0, kept = 0, magnitude = 0;
        };
        std::vector<Sums> all(m_ * kChunk);
        std::vector<float> weights(kRows * intermediate_);
        std::array<double, kRows> quantised{}, kept{};
        for (const ChosenExpert& expert : chosen_) {
            const WeightDecoder w2 = WeightDecoder::w2(arrays_.problem, *expert.weights);
            for (std::size_t column = 0; column < kChunk; column += kRows) {
                for (std::size_t r = 0; r < kRows; ++r) {
                    w2(first + column + r, std::span(weights).subspan(r * intermediate_, intermediate_));
                }
                for (const std::size_t pair : expert.pairs) {
                    multiply(weights.data(), &h_quantised_[pair * intermediate_], intermediate_, quantised);
                    multiply(weights.data(), &h_[pair * intermediate_], intermediate_, kept);
                    const double weight = arrays_.weights[pair];
                    for (std::size_t r = 0; r < kRows; ++r) {
                        Sums& sums = all[pair / slots_ * kChunk + column + r];
                        sums.quantised += weight * quantised[r];
                        sums.kept += weight * kept[r];
                        sums.magnitude += std::fabs(weight * quantised[r]);
                    }
                }
            }
        }
        for (std::size_t i = 0; i < all.size(); ++i) {
            const std::size_t at = i / kChunk * hidden_ + first + i % kChunk;
            result.quantised[at] = static_cast<float>(all[i].quantised);
            result.kept[at] = static_cast<float>(all[i].kept);
            result.magnitudes[at] = static_cast<float>(all[i].magnitude);
        }
    }

    const FusedMoeArrays& arrays_;
    const std::size_t m_, hidden_, intermediate_, slots_;
    const std::vector<ChosenExpert> chosen_;
    std::vector<float> x_;                // [m, hidden], quantised
    std::vector<float> h_, h_quantised_;  // [pair, intermediate]
};

double relative(double gap, double size) {
    const double error = gap == 0 ? 0.0 : std::sqrt(gap / size);
    return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

}  // namespace

MxmoeReference mxmoe_reference(const FusedMoeArrays& arrays, std::int64_t m) {
    return Evaluation(arrays, as_size(m)).run();
}

MxmoeComparison compare_mxmoe(std::span<const std::uint16_t> out, const MxmoeReference& reference,
                              std::int64_t m, std::int64_t hidden) {
    MxmoeComparison result;
    const std::size_t columns = as_size(hidden);
    double whole_gap = 0, whole_size = 0, product = 0, squares = 0;
    for (std::size_t token = 0; token < as_size(m); ++token) {
        double gap = 0, size = 0;
        for (std::size_t i = token * columns; i < (token + 1) * columns; ++i) {
            const double found = formats::bf16_to_float(out[i]);
            const double wanted = reference.quantised[i];
            const double kept = reference.kept[i];
            gap += (found - wanted) * (found - wanted);
            size += wanted * wanted;
            product += found * kept;
            squares += found * found + kept * kept;
        }
        if (const double error = relative(gap, size); error > result.token_error) {
            result.token_error = error;
            result.worst_token = static_cast<std::int64_t>(token);
        }
        whole_gap += gap;
        whole_size += size;
    }
    result.outputs = as_size(m) * columns;
    result.error = relative(whole_gap, whole_size);
    result.cosine_difference = squares == 0 ? 0 : 1 - 2 * product / squares;
    return result;
}

std::size_t count_beyond_rounding(std::span<const std::uint16_t> out, std::span<const std::uint16_t> other,
                                  const MxmoeReference& reference, std::int64_t slots) {
    // Half a place of bf16, of no more than all magnitudes together, for each rounding of either result.
    const double unit = std::ldexp(1.0, -9) * static_cast<double>(2 * (2 * slots + 1));
    std::size_t count = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
        const double gap = std::fabs(static_cast<double>(formats::bf16_to_float(out[i])) -
                                     static_cast<double>(formats::bf16_to_float(other[i])));
        count += gap <= unit * static_cast<double>(reference.magnitudes[i]) ? 0 : 1;
    }
    return count;
}

}  // namespace kiln::operators
