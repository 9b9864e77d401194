#include "runtime/service/linear_trial.hpp"

#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "runtime/operators/linear_reference.hpp"
#include "runtime/service/launch.hpp"

namespace kiln::service {

namespace {

class LinearCase final : public TrialCase {
  public:
    explicit LinearCase(operators::LinearArrays arrays) : arrays_(std::move(arrays)) {}

    std::int64_t max_m() const override { return arrays_.m; }

    std::vector<TrialInput> weights() const override {
        return {{"w", std::as_bytes(std::span(arrays_.w))},
                {"w_scale", std::as_bytes(std::span(arrays_.w_scale))}};
    }

    std::vector<TrialInput> inputs(std::int64_t m) const override {
        const auto elements = static_cast<std::size_t>((m - 1) * arrays_.ldx + arrays_.k);
        return {{"x", std::as_bytes(std::span(arrays_.x).first(elements)),
                 static_cast<std::size_t>(arrays_.ldx) * sizeof(std::uint16_t)}};
    }

    std::vector<TrialOutput> outputs(std::int64_t m) const override {
        constexpr std::size_t kBytes = sizeof(std::uint16_t);
        return {{"out", static_cast<std::size_t>(m * arrays_.n) * kBytes, kBytes}};
    }

    kiln_status launch(const Plan& plan, device::Stream stream, std::int64_t m,
                       const TrialPointers& at) const override {
        const kiln_linear_args args{at.inputs[0], arrays_.ldx, at.weights[0],
                                    static_cast<const float*>(at.weights[1]), at.outputs[0]};
        return service::launch<operators::LinearProblem>(plan, stream, m, args);
    }

    TrialVerdict compare(const PlanBucket& /*bucket*/, std::int64_t m,
                         std::span<const Bytes> outputs) const override {
        const auto comparison =
            operators::compare_linear(elements_of<std::uint16_t>(outputs[0]), reference(), m, arrays_.n);
        std::string remark = fmt::format("{} of {} differ", comparison.differing, comparison.outputs);
        if (comparison.too_far > 0) {
            remark += fmt::format(", {} by more than is allowed", comparison.too_far);
        }
        return {comparison.error, operators::LinearComparison::kBound, comparison.passed(),
                std::move(remark)};
    }

  private:
    // Made when the first result is to be compared: a case that is only timed never needs it.
    const std::vector<double>& reference() const {
        std::call_once(reference_made_, [this] { reference_ = operators::linear_reference(arrays_); });
        return reference_;
    }

    const operators::LinearArrays arrays_;
    mutable std::once_flag reference_made_;
    mutable std::vector<double> reference_;
};

}  // namespace

std::unique_ptr<TrialCase> make_trial_case(const operators::LinearProblem& problem, std::int64_t max_m,
                                           std::uint64_t seed) {
    return std::make_unique<LinearCase>(operators::make_linear_case(max_m, problem.n, problem.k, seed));
}

std::unique_ptr<TrialCase> make_typical_trial_case(const operators::LinearProblem& problem,
                                                   std::int64_t max_m, std::uint64_t seed) {
    return std::make_unique<LinearCase>(
        operators::make_typical_linear_case(max_m, problem.n, problem.k, seed));
}

}  // namespace kiln::service
