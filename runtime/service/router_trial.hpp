// What a trial of `router` runs.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/operators/router.hpp"
#include "runtime/operators/router_reference.hpp"
#include "runtime/service/trial_case.hpp"

namespace kiln::service {

// Of given arrays.
[[nodiscard]] std::unique_ptr<TrialCase> make_trial_case(operators::RouterArrays arrays);
[[nodiscard]] std::unique_ptr<TrialCase> make_trial_case(const operators::RouterProblem& problem,
                                                         std::int64_t max_m, std::uint64_t seed);

}  // namespace kiln::service
