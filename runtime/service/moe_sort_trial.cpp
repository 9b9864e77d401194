#include "runtime/service/moe_sort_trial.hpp"

#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "runtime/operators/moe_sort_reference.hpp"
#include "runtime/service/launch.hpp"

namespace kiln::service {

namespace {

using operators::MoeSortArrays;
using operators::MoeSortProblem;
using operators::MoeSortResult;

constexpr std::uint8_t kBefore = 0xff;  // what fills an output that a launch leaves alone

// The arrays of `result` that the problem has, in the order in which the trial lists them. `visit` is
// called with the name and the array of each.
template <class Result, class Visitor>
void visit_arrays(const MoeSortProblem& problem, Result& result, Visitor visit) {
    visit("num_valid", result.num_valid);
    visit("sorted_expert_ids", result.sorted_expert_ids);
    visit("sorted_ids", result.sorted_ids);
    visit("sorted_weights", result.sorted_weights);
    if (problem.hidden > 0) {
        visit("moe_buf", result.moe_buf);
    }
    if (problem.quantised) {
        visit("q", result.q);
        visit("q_scale", result.q_scale);
    }
}

class MoeSortCase final : public TrialCase {
  public:
    explicit MoeSortCase(MoeSortArrays arrays) : arrays_(std::move(arrays)) {}

    std::int64_t max_m() const override { return arrays_.m; }

    std::vector<TrialInput> weights() const override { return {}; }

    std::vector<TrialInput> inputs(std::int64_t m) const override {
        const auto pairs = static_cast<std::size_t>(m * problem().slots);
        const std::size_t pair_bytes = static_cast<std::size_t>(problem().slots) * sizeof(float);
        std::vector<TrialInput> inputs{
            {"ids", std::as_bytes(std::span(arrays_.ids).first(pairs)), pair_bytes},
            {"weights", std::as_bytes(std::span(arrays_.weights).first(pairs)), pair_bytes}};
        if (problem().quantised) {
            const auto elements = static_cast<std::size_t>((m - 1) * arrays_.ldx + problem().hidden);
            inputs.push_back({"x", std::as_bytes(std::span(arrays_.x).first(elements)),
                              static_cast<std::size_t>(arrays_.ldx) * sizeof(std::uint16_t)});
        }
        return inputs;
    }

    std::vector<TrialOutput> outputs(std::int64_t m) const override {
        std::vector<TrialOutput> outputs;
        const MoeSortResult sizes = operators::filled_moe_sort_result(problem(), m, kBefore);
        visit_arrays(problem(), sizes, [&](const char* name, const auto& array) {
            outputs.push_back({name, array.size() * sizeof(array[0]), sizeof(array[0]), std::byte{kBefore}});
        });
        return outputs;
    }

    kiln_status launch(const Plan& plan, device::Stream stream, std::int64_t m,
                       const TrialPointers& at) const override {
        kiln_moe_sort_args args{};
        args.ids = static_cast<const std::int32_t*>(at.inputs[0]);
        args.weights = static_cast<const float*>(at.inputs[1]);
        args.num_valid = static_cast<std::int32_t*>(at.outputs[0]);
        args.sorted_expert_ids = static_cast<std::int32_t*>(at.outputs[1]);
        args.sorted_ids = static_cast<std::int32_t*>(at.outputs[2]);
        args.sorted_weights = static_cast<float*>(at.outputs[3]);
        if (problem().hidden > 0) {
            args.moe_buf = at.outputs[4];
        }
        if (problem().quantised) {
            args.x = at.inputs[2];
            args.ldx = arrays_.ldx;
            args.q = at.outputs[5];
            args.q_scale = at.outputs[6];
        }
        args.workspace = at.workspace;
        return service::launch<MoeSortProblem>(plan, stream, m, args);
    }

    TrialVerdict compare(const PlanBucket& /*bucket*/, std::int64_t m,
                         std::span<const Bytes> outputs) const override {
        const MoeSortArrays arrays = operators::head(arrays_, m);
        const MoeSortResult expected = operators::moe_sort_reference(arrays, kBefore);
        MoeSortResult found = operators::filled_moe_sort_result(problem(), m, kBefore);
        std::size_t next = 0;
        std::size_t elements = 0;
        visit_arrays(problem(), found, [&](const char*, auto& array) {
            std::memcpy(array.data(), outputs[next++].data(), array.size() * sizeof(array[0]));
            elements += array.size();
        });
        const auto comparison = operators::compare_moe_sort(arrays, expected, found);
        return {static_cast<double>(comparison.differing) / static_cast<double>(elements), 0,
                comparison.passed(),
                comparison.passed() ? fmt::format("0 of {} differ", elements) : comparison.remark};
    }

  private:
    [[nodiscard]] const MoeSortProblem& problem() const { return arrays_.problem; }

    const MoeSortArrays arrays_;
};

}  // namespace

std::unique_ptr<TrialCase> make_trial_case(const MoeSortProblem& problem, std::int64_t max_m,
                                           std::uint64_t seed) {
    return std::make_unique<MoeSortCase>(operators::make_moe_sort_case(problem, max_m, seed));
}

}  // namespace kiln::service
