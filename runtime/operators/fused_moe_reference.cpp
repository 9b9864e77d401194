#include "runtime/operators/fused_moe_reference.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>

#include "base/cores.hpp"
#include "runtime/formats/bf16.hpp"
#include "runtime/formats/e2m1.hpp"
#include "runtime/formats/e4m3.hpp"
#include "runtime/formats/e8m0.hpp"
#include "runtime/formats/scale_layout.hpp"
#include "runtime/formats/weight_layout.hpp"
#include "runtime/operators/dot.hpp"

namespace kiln::operators {

namespace {

constexpr std::size_t kBlock = 128;  // k and rows that share an fp8 scale
constexpr std::size_t kGroup = 32;   // k that share an mxfp4 scale

std::size_t as_size(std::int64_t value) {
    return static_cast<std::size_t>(value);
}

// Runs work(i) for i below count, on all cores of the process.
void share_out(std::size_t count, const std::function<void(std::size_t)>& work) {
    const std::size_t shares = cores_of_this_process();
    const auto run = [&](std::size_t share) {
        for (std::size_t i = share; i < count; i += shares) {
            work(i);
        }
    };
    std::vector<std::thread> threads;
    for (std::size_t share = 1; share < shares; ++share) {
        threads.emplace_back(run, share);
    }
    run(0);
    for (std::thread& thread : threads) {
        thread.join();
    }
}

// A row of preshuffled weights [rows, k], dequantised.
class Decoder {
  public:
    Decoder(bool fp8, std::span<const std::uint8_t> codes, std::span<const std::uint8_t> scales,
            std::size_t k)
        : fp8_(fp8), codes_(codes), scales_(scales), k_(k) {}

    void operator()(std::size_t row, std::span<double> out) const {
        fp8_ ? decode_fp8(row, out) : decode_mxfp4(row, out);
    }

  private:
    void decode_fp8(std::size_t row, std::span<double> out) const {
        static const auto values = [] {
            std::array<double, 256> table{};
            for (std::size_t code = 0; code < table.size(); ++code) {
                table[code] = formats::e4m3_to_float(static_cast<std::uint8_t>(code));
            }
            return table;
        }();
        for (std::size_t k = 0; k < k_; ++k) {
            float scale = 0;
            std::memcpy(&scale, &scales_[(row / kBlock * (k_ / kBlock) + k / kBlock) * sizeof(scale)],
                        sizeof(scale));
            out[k] = values[codes_[formats::l1_offset(row, k, k_)]] * static_cast<double>(scale);
        }
    }
    void decode_mxfp4(std::size_t row, std::span<double> out) const {
        for (std::size_t group = 0; group < k_ / kGroup; ++group) {
            const double scale = formats::e8m0_to_float(scales_[formats::l3_offset(row, group, k_ / kGroup)]);
            std::array<double, 16> values{};
            for (std::size_t code = 0; code < values.size(); ++code) {
                values[code] = scale * formats::e2m1_to_float(static_cast<std::uint8_t>(code));
            }
            // The 16 bytes of a group are adjacent.
            const auto packed =
                codes_.subspan(formats::l1_offset(row, group * kGroup / 2, k_ / 2), kGroup / 2);
            for (std::size_t k = 0; k < kGroup; ++k) {
                out[group * kGroup + k] = values[formats::e2m1_at(packed, k)];
            }
        }
    }

    bool fp8_;
    std::span<const std::uint8_t> codes_, scales_;
    std::size_t k_;
};

double round_to_bf16(double value) {
    return formats::bf16_to_float(formats::double_to_bf16(value));
}

std::vector<double> activations(const FusedMoeArrays& arrays) {
    const auto hidden = as_size(arrays.problem.hidden);
    std::vector<double> x(as_size(arrays.m) * hidden);
    for (std::size_t token = 0; token < as_size(arrays.m); ++token) {
        for (std::size_t k = 0; k < hidden; ++k) {
            x[token * hidden + k] = formats::bf16_to_float(arrays.x[token * as_size(arrays.ldx) + k]);
        }
    }
    return x;
}

// One expert, and the pairs (token * slots + slot) that chose it.
struct Chosen {
    const ExpertWeights* weights;
    std::vector<std::size_t> pairs;
};

class Evaluation {
  public:
    explicit Evaluation(const FusedMoeArrays& arrays)
        : arrays_(arrays),
          x_(activations(arrays)),
          dots_(arrays.ids.size() * as_size(arrays.problem.hidden)) {
        std::map<std::int32_t, Chosen> chosen;
        for (std::size_t pair = 0; pair < arrays.ids.size(); ++pair) {
            if (const auto found = arrays.experts.find(arrays.ids[pair]); found != arrays.experts.end()) {
                Chosen& expert = chosen[arrays.ids[pair]];
                expert.weights = &found->second;
                expert.pairs.push_back(pair);
            }
        }
        for (auto& [id, expert] : chosen) {
            chosen_.push_back(std::move(expert));
        }
    }

    std::vector<std::uint16_t> run() {
        share_out(chosen_.size(), [this](std::size_t i) { evaluate(chosen_[i]); });
        return combine();
    }

  private:
    // The products of the second stage, unweighted, into dots_.
    void evaluate(const Chosen& expert) {
        const auto hidden = as_size(arrays_.problem.hidden);
        const auto intermediate = as_size(arrays_.problem.intermediate);
        const bool fp8 = arrays_.problem.fp8;
        const Decoder w13(fp8, expert.weights->w13, expert.weights->w13_scale, hidden);
        const Decoder w2(fp8, expert.weights->w2, expert.weights->w2_scale, intermediate);
        std::vector<double> h(expert.pairs.size() * intermediate), gate(hidden), up(hidden);
        for (std::size_t column = 0; column < intermediate; ++column) {
            w13(column, gate);
            w13(intermediate + column, up);
            for (std::size_t i = 0; i < expert.pairs.size(); ++i) {
                const std::size_t token = expert.pairs[i] / as_size(arrays_.problem.slots);
                const std::span<const double> row(&x_[token * hidden], hidden);
                const double g = dot(gate, row);
                h[i * intermediate + column] = round_to_bf16(g / (1.0 + std::exp(-g)) * dot(up, row));
            }
        }
        std::vector<double> down(intermediate);
        for (std::size_t n = 0; n < hidden; ++n) {
            w2(n, down);
            for (std::size_t i = 0; i < expert.pairs.size(); ++i) {
                dots_[expert.pairs[i] * hidden + n] =
                    dot(down, std::span<const double>(&h[i * intermediate], intermediate));
            }
        }
    }

    [[nodiscard]] std::vector<std::uint16_t> combine() const {
        const auto hidden = as_size(arrays_.problem.hidden);
        const auto slots = as_size(arrays_.problem.slots);
        std::vector<double> sums(as_size(arrays_.m) * hidden);
        for (const Chosen& expert : chosen_) {
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
    const std::vector<double> x_;  // [m, hidden]
    std::vector<double> dots_;     // [pair, hidden]
    std::vector<Chosen> chosen_;
};

}  // namespace

std::vector<std::uint16_t> fused_moe_reference(const FusedMoeArrays& arrays) {
    return Evaluation(arrays).run();
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
