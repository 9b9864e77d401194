// What a trial of `moe_sort` runs.
#pragma once

#include "runtime/operators/moe_sort.hpp"
#include "runtime/service/trial_case.hpp"

namespace kiln::service {

[[nodiscard]] std::unique_ptr<TrialCase> make_trial_case(const operators::MoeSortProblem& problem,
                                                         std::int64_t max_m, std::uint64_t seed);

}  // namespace kiln::service
