#include "runtime/service/trial.hpp"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include "runtime/service/fused_moe_trial.hpp"
#include "runtime/service/linear_trial.hpp"
#include "runtime/service/moe_sort_trial.hpp"
#include "runtime/service/router_trial.hpp"
#include "runtime/service/trial_run.hpp"

namespace kiln::service {

std::unique_ptr<TrialCase> make_case(const operators::TypedProblem& problem, std::int64_t max_m,
                                     std::uint64_t seed) {
    return std::visit([&](const auto& one) { return make_trial_case(one, max_m, seed); }, problem);
}

std::unique_ptr<TrialCase> make_typical_case(const operators::TypedProblem& problem, std::int64_t max_m,
                                             std::uint64_t seed) {
    const auto make = [&](const auto& one) -> std::unique_ptr<TrialCase> {
        if constexpr (requires { make_typical_trial_case(one, max_m, seed); }) {
            return make_typical_trial_case(one, max_m, seed);
        }
        return nullptr;
    };
    return std::visit(make, problem);
}

Result<DeviceArray> load_weights(const std::shared_ptr<device::Device>& device, const TrialInput& input) {
    if (input.parts.empty()) {
        return DeviceArray::upload(device, input.bytes);
    }
    Result<DeviceArray> memory = DeviceArray::create(device, input.whole_bytes);
    for (const TrialPart& part : input.parts) {
        if (memory) {
            auto* at = static_cast<std::byte*>(memory->get()) + part.offset;
            if (Result<void> copied = device->copy_to_device(at, part.bytes, nullptr); !copied) {
                return fail(copied);
            }
        }
    }
    return memory;
}

Result<std::unique_ptr<Trial>> Trial::create(std::shared_ptr<const Plan> plan, std::int64_t max_m,
                                             std::uint64_t seed) {
    std::shared_ptr<const TrialCase> arrays = make_case(plan->typed(), max_m, seed);
    return create(std::move(plan), std::move(arrays));
}

Result<std::unique_ptr<Trial>> Trial::create(std::shared_ptr<const Plan> plan,
                                             std::shared_ptr<const TrialCase> arrays) {
    std::vector<DeviceArray> weights;
    for (const TrialInput& input : arrays->weights()) {
        Result<DeviceArray> memory = load_weights(plan->shared_device(), input);
        if (!memory) {
            return fail(memory);
        }
        weights.push_back(*std::move(memory));
    }
    return std::unique_ptr<Trial>(new Trial(std::move(plan), std::move(arrays), std::move(weights)));
}

Result<TrialResult> Trial::run(std::int64_t m, std::span<const device::SimulationRules> rules) {
    if (m < 1 || m > case_->max_m()) {
        return fail(ErrorCode::invalid_argument, Stage::launch,
                    fmt::format("expected M from 1 to {}, for which the trial was made, found {}",
                                case_->max_m(), m));
    }
    if (Result<void> current = plan_->device().make_current(); !current) {
        return fail(current);
    }
    return TrialRun(*plan_, *case_, pointers_of(weights_), m, rules).finish();
}

std::vector<device::SimulationRules> all_rules(std::uint64_t seed) {
    std::vector<device::SimulationRules> rules;
    for (const char* scopes : {"early", "late"}) {
        for (const char* order : {"ascending", "descending"}) {
            rules.push_back({order, scopes, "all"});
        }
        rules.push_back({fmt::format("shuffle:{}", seed), scopes, "all"});
        // What only a narrow window shows wants more than one.
        for (std::uint64_t n = 0; n < 3; ++n) {
            rules.push_back({fmt::format("interleave:{}", seed + n), scopes, "all"});
        }
    }
    return rules;
}

}  // namespace kiln::service
