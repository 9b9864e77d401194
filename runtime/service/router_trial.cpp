#include "runtime/service/router_trial.hpp"

#include <utility>

#include <fmt/format.h>

#include "runtime/service/launch.hpp"

namespace kiln::service {

namespace {

class RouterCase final : public TrialCase {
  public:
    explicit RouterCase(operators::RouterArrays arrays)
        : arrays_(std::move(arrays)), reference_(operators::router_reference(arrays_)) {}

    std::int64_t max_m() const override { return arrays_.m; }

    std::vector<TrialInput> weights() const override {
        std::vector<TrialInput> all{{"gate", std::as_bytes(std::span(arrays_.gate))}};
        if (arrays_.shared != 0) {
            all.push_back({"shared_gate", std::as_bytes(std::span(arrays_.shared_gate))});
        }
        return all;
    }

    std::vector<TrialInput> inputs(std::int64_t m) const override {
        const auto elements = static_cast<std::size_t>((m - 1) * arrays_.ldx + arrays_.hidden);
        return {{"x", std::as_bytes(std::span(arrays_.x).first(elements)),
                 static_cast<std::size_t>(arrays_.ldx) * sizeof(std::uint16_t)}};
    }

    std::vector<TrialOutput> outputs(std::int64_t m) const override {
        const auto results = static_cast<std::size_t>(m * arrays_.columns());
        return {{"ids", results * sizeof(std::int32_t), sizeof(std::int32_t)},
                {"weights", results * sizeof(float), sizeof(float)}};
    }

    kiln_status launch(const Plan& plan, device::Stream stream, std::int64_t m,
                       const TrialPointers& at) const override {
        const kiln_router_args args{at.inputs[0],
                                    arrays_.ldx,
                                    at.weights[0],
                                    arrays_.shared != 0 ? at.weights[1] : nullptr,
                                    static_cast<std::int32_t*>(at.outputs[0]),
                                    static_cast<float*>(at.outputs[1]),
                                    arrays_.scale,
                                    at.workspace};
        return service::launch<operators::RouterProblem>(plan, stream, m, args);
    }

    TrialVerdict compare(const PlanBucket& /*bucket*/, std::int64_t m,
                         std::span<const Bytes> outputs) const override {
        const auto comparison =
            operators::compare_router(elements_of<std::int32_t>(outputs[0]), elements_of<float>(outputs[1]),
                                      reference_, m, arrays_.columns());
        std::string remark = fmt::format("{} of {} ids differ", comparison.wrong_ids, comparison.results);
        if (comparison.too_far > 0) {
            remark += fmt::format(", {} weights by more than is allowed", comparison.too_far);
        }
        return {comparison.error, operators::RouterComparison::kBound, comparison.passed(),
                std::move(remark)};
    }

  private:
    const operators::RouterArrays arrays_;
    const operators::RouterResults reference_;
};

}  // namespace

std::unique_ptr<TrialCase> make_trial_case(operators::RouterArrays arrays) {
    return std::make_unique<RouterCase>(std::move(arrays));
}

std::unique_ptr<TrialCase> make_trial_case(const operators::RouterProblem& problem, std::int64_t max_m,
                                           std::uint64_t seed) {
    return std::make_unique<RouterCase>(operators::make_router_case(max_m, problem.hidden, problem.experts,
                                                                    problem.top_k, problem.shared, seed));
}

}  // namespace kiln::service
