#include "runtime/service/trial.hpp"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include "runtime/service/linear_trial.hpp"

namespace kiln::service {

Result<std::unique_ptr<Trial>> Trial::create(std::shared_ptr<const Plan> plan, std::int64_t max_m,
                                             std::uint64_t seed) {
    if (std::holds_alternative<operators::LinearProblem>(plan->typed())) {
        return make_linear_trial(std::move(plan), max_m, seed);
    }
    return fail(ErrorCode::internal, Stage::configure, fmt::format("{} has no trial", plan->op().name()));
}

}  // namespace kiln::service
