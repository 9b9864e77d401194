#include "runtime/service/fused_moe_trial.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "runtime/operators/fused_moe_reference.hpp"
#include "runtime/operators/fused_moe_small_m.hpp"
#include "runtime/operators/mxmoe_reference.hpp"
#include "runtime/service/launch.hpp"

namespace kiln::service {

namespace {

using operators::ExpertWeights;

class FusedMoeCase final : public TrialCase {
  public:
    explicit FusedMoeCase(operators::FusedMoeArrays arrays) : arrays_(std::move(arrays)) {}

    std::int64_t max_m() const override { return arrays_.m; }

    std::vector<TrialInput> weights() const override {
        const operators::FusedMoeBytes bytes = operators::fused_moe_bytes(arrays_.problem);
        return {of_experts("w13", bytes.w13, bytes.expert_w13, &ExpertWeights::w13),
                of_experts("w13_scale", bytes.w13_scale, bytes.expert_w13_scale, &ExpertWeights::w13_scale),
                of_experts("w2", bytes.w2, bytes.expert_w2, &ExpertWeights::w2),
                of_experts("w2_scale", bytes.w2_scale, bytes.expert_w2_scale, &ExpertWeights::w2_scale)};
    }

    std::vector<TrialInput> inputs(std::int64_t m) const override {
        const auto slots = static_cast<std::size_t>(arrays_.problem.slots);
        const auto elements = static_cast<std::size_t>((m - 1) * arrays_.ldx + arrays_.problem.hidden);
        const std::size_t pairs = static_cast<std::size_t>(m) * slots;
        return {{"x", std::as_bytes(std::span(arrays_.x).first(elements)),
                 static_cast<std::size_t>(arrays_.ldx) * sizeof(std::uint16_t)},
                {"ids", std::as_bytes(std::span(arrays_.ids).first(pairs)), slots * sizeof(std::int32_t)},
                {"weights", std::as_bytes(std::span(arrays_.weights).first(pairs)), slots * sizeof(float)}};
    }

    std::vector<TrialOutput> outputs(std::int64_t m) const override {
        constexpr std::size_t kBytes = sizeof(std::uint16_t);
        return {{"out", static_cast<std::size_t>(m * arrays_.problem.hidden) * kBytes, kBytes},
                {"invalid_id", sizeof(std::int32_t), sizeof(std::int32_t), std::byte{0}}};
    }

    kiln_status launch(const Plan& plan, device::Stream stream, std::int64_t m,
                       const TrialPointers& at) const override {
        kiln_fused_moe_args args{};
        args.x = at.inputs[0];
        args.ldx = arrays_.ldx;
        args.w13 = at.weights[0];
        args.w13_scale = at.weights[1];
        args.w2 = at.weights[2];
        args.w2_scale = at.weights[3];
        args.ids = static_cast<const std::int32_t*>(at.inputs[1]);
        args.weights = static_cast<const float*>(at.inputs[2]);
        args.out = at.outputs[0];
        args.invalid_id = static_cast<std::int32_t*>(at.outputs[1]);
        args.workspace = at.workspace;
        return service::launch<operators::FusedMoeProblem>(plan, stream, m, args);
    }

    TrialVerdict compare(const PlanBucket& bucket, std::int64_t m,
                         std::span<const Bytes> outputs) const override {
        const std::span<const std::uint16_t> out = elements_of<std::uint16_t>(outputs[0]);
        TrialVerdict verdict = std::holds_alternative<operators::MxmoeBucket>(bucket.typed)
                                   ? compare_quantised(m, out)
                                   : compare_plain(m, out);
        const std::int32_t expected = operators::has_invalid_id(arrays_, m) ? 1 : 0;
        if (const std::int32_t found = elements_of<std::int32_t>(outputs[1]).front(); found != expected) {
            verdict.passed = false;
            verdict.remark += fmt::format(", the flag of invalid ids is {} instead of {}", found, expected);
        }
        return verdict;
    }

  private:
    // Each reference is made for the most tokens that its templates can be asked for, the first time that one
    // of them is compared.
    [[nodiscard]] TrialVerdict compare_plain(std::int64_t m, std::span<const std::uint16_t> out) const {
        using Comparison = operators::FusedMoeComparison;
        if (plain_.empty()) {
            plain_ =
                operators::fused_moe_reference(arrays_, std::min(arrays_.m, operators::kFusedMoeMostTokens));
        }
        const Comparison comparison = operators::compare_fused_moe(out, plain_, m, arrays_.problem.hidden);
        TrialVerdict verdict{comparison.error, Comparison::kBound, comparison.passed(),
                             fmt::format("{} of {} differ", comparison.differing, comparison.outputs)};
        if (!comparison.passed()) {
            verdict.remark +=
                fmt::format(", {:.2g} of token {}", comparison.token_error, comparison.worst_token);
        }
        return verdict;
    }
    [[nodiscard]] TrialVerdict compare_quantised(std::int64_t m, std::span<const std::uint16_t> out) const {
        using Comparison = operators::MxmoeComparison;
        if (quantised_.quantised.empty()) {
            quantised_ = operators::mxmoe_reference(arrays_);
        }
        const Comparison comparison = operators::compare_mxmoe(out, quantised_, m, arrays_.problem.hidden);
        TrialVerdict verdict{comparison.error, Comparison::kBound, comparison.passed(),
                             fmt::format("cosine difference {:.2g} (bound {:.2g}) where h is not quantised",
                                         comparison.cosine_difference, Comparison::kCosineBound)};
        if (!comparison.passed()) {
            verdict.remark += fmt::format(", {:.2g} (bound {:.2g}) of token {}", comparison.token_error,
                                          Comparison::kTokenBound, comparison.worst_token);
        }
        return verdict;
    }

    [[nodiscard]] TrialInput of_experts(std::string_view name, std::size_t bytes, std::size_t expert_bytes,
                                        std::vector<std::uint8_t> ExpertWeights::*member) const {
        TrialInput input{name, {}, 0, bytes, {}};
        for (const std::int32_t id : std::set(arrays_.ids.begin(), arrays_.ids.end())) {
            if (const ExpertWeights* expert = arrays_.weights_of(id)) {
                input.parts.push_back(
                    {static_cast<std::size_t>(id) * expert_bytes, std::as_bytes(std::span(expert->*member))});
            }
        }
        return input;
    }

    const operators::FusedMoeArrays arrays_;
    mutable std::vector<std::uint16_t> plain_;
    mutable operators::MxmoeReference quantised_;
};

}  // namespace

std::unique_ptr<TrialCase> make_trial_case(const operators::FusedMoeProblem& problem, std::int64_t max_m,
                                           std::uint64_t seed) {
    return std::make_unique<FusedMoeCase>(operators::make_fused_moe_case(problem, max_m, seed));
}

std::unique_ptr<TrialCase> make_typical_trial_case(const operators::FusedMoeProblem& problem,
                                                   std::int64_t max_m, std::uint64_t seed) {
    return std::make_unique<FusedMoeCase>(operators::make_typical_fused_moe_case(problem, max_m, seed));
}

}  // namespace kiln::service
