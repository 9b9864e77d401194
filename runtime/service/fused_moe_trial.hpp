// What a trial of `fused_moe` runs.
#pragma once

#include "runtime/operators/fused_moe.hpp"
#include "runtime/service/trial_case.hpp"

namespace kiln::service {

[[nodiscard]] std::unique_ptr<TrialCase> make_trial_case(const operators::FusedMoeProblem& problem,
                                                         std::int64_t max_m, std::uint64_t seed);

// What takes as long as a model's step does, and no more of a check than it happens to be.
[[nodiscard]] std::unique_ptr<TrialCase> make_typical_trial_case(const operators::FusedMoeProblem& problem,
                                                                 std::int64_t max_m, std::uint64_t seed);

}  // namespace kiln::service
