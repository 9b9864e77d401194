// What a trial of `fused_moe` runs.
#pragma once

#include "runtime/operators/fused_moe.hpp"
#include "runtime/service/trial_case.hpp"

namespace kiln::service {

[[nodiscard]] std::unique_ptr<TrialCase> make_trial_case(const operators::FusedMoeProblem& problem,
                                                         std::int64_t max_m, std::uint64_t seed);

}  // namespace kiln::service
