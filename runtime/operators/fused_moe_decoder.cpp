#include "runtime/operators/fused_moe_decoder.hpp"

#include <array>
#include <cassert>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "base/cores.hpp"
#include "runtime/formats/e2m1.hpp"
#include "runtime/formats/e4m3.hpp"
#include "runtime/formats/e8m0.hpp"
#include "runtime/formats/scale_layout.hpp"
#include "runtime/formats/weight_layout.hpp"

namespace kiln::operators {

namespace {

constexpr std::size_t kBlock = 128;  // k and rows that share an fp8 scale
constexpr std::size_t kGroup = 32;   // k that share an mxfp4 scale

std::size_t as_size(std::int64_t value) {
    return static_cast<std::size_t>(value);
}

}  // namespace

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

WeightDecoder WeightDecoder::w13(const FusedMoeProblem& problem, const ExpertWeights& expert) {
    return {problem.fp8, w13_order(problem), expert.w13, expert.w13_scale, as_size(problem.hidden)};
}

WeightDecoder WeightDecoder::w2(const FusedMoeProblem& problem, const ExpertWeights& expert) {
    return {problem.fp8, formats::RowOrder::plain(), expert.w2, expert.w2_scale,
            as_size(problem.intermediate)};
}

void WeightDecoder::operator()(std::size_t row, std::span<double> out) const {
    fp8_ ? decode_fp8(row, out) : decode_mxfp4(row, out);
}

void WeightDecoder::operator()(std::size_t row, std::span<float> out) const {
    assert(!fp8_);
    decode_mxfp4(row, out);
}

void WeightDecoder::decode_fp8(std::size_t row, std::span<double> out) const {
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

template <class Number>
void WeightDecoder::decode_mxfp4(std::size_t row, std::span<Number> out) const {
    const std::size_t place = order_.place(row);
    for (std::size_t group = 0; group < k_ / kGroup; ++group) {
        const float scale = formats::e8m0_to_float(scales_[formats::l3_offset(place, group, k_ / kGroup)]);
        std::array<Number, 16> values{};
        for (std::size_t code = 0; code < values.size(); ++code) {
            values[code] = scale * formats::e2m1_to_float(static_cast<std::uint8_t>(code));
        }
        // The 16 bytes of a group are adjacent.
        const auto packed = codes_.subspan(formats::l1_offset(place, group * kGroup / 2, k_ / 2), kGroup / 2);
        for (std::size_t k = 0; k < kGroup; ++k) {
            out[group * kGroup + k] = values[formats::e2m1_at(packed, k)];
        }
    }
}

std::vector<ChosenExpert> chosen_experts(const FusedMoeArrays& arrays, std::size_t m) {
    std::map<std::int32_t, ChosenExpert> chosen;
    for (std::size_t pair = 0; pair < m * as_size(arrays.problem.slots); ++pair) {
        if (const ExpertWeights* weights = arrays.weights_of(arrays.ids[pair])) {
            ChosenExpert& expert = chosen[arrays.ids[pair]];
            expert.weights = weights;
            expert.pairs.push_back(pair);
        }
    }
    std::vector<ChosenExpert> result;
    for (auto& [id, expert] : chosen) {
        result.push_back(std::move(expert));
    }
    return result;
}

}  // namespace kiln::operators
