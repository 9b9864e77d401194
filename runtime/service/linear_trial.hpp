// What a trial of `linear` runs.
#pragma once

#include "runtime/operators/linear.hpp"
#include "runtime/service/trial_case.hpp"

namespace kiln::service {

[[nodiscard]] std::unique_ptr<TrialCase> make_trial_case(const operators::LinearProblem& problem,
                                                         std::int64_t max_m, std::uint64_t seed);
// Inputs as a model's step has them, for timing.
[[nodiscard]] std::unique_ptr<TrialCase> make_typical_trial_case(const operators::LinearProblem& problem,
                                                                 std::int64_t max_m, std::uint64_t seed);

}  // namespace kiln::service
