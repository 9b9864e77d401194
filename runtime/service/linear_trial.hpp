// The trial of `linear`.
#pragma once

#include "runtime/service/trial.hpp"

namespace kiln::service {

// As Trial::create(). Requires a plan of `linear`.
[[nodiscard]] Result<std::unique_ptr<Trial>> make_linear_trial(std::shared_ptr<const Plan> plan,
                                                               std::int64_t max_m, std::uint64_t seed);

}  // namespace kiln::service
