// The functions that every operator has, written once: each operator's file names its structs and calls
// these.
#pragma once

#include <cstdint>

#include "runtime/api/handles.hpp"
#include "runtime/service/launch.hpp"

namespace kiln::api {

// kiln_OPERATOR_supports, for a problem that was read, or could not be.
[[nodiscard]] kiln_status supports(kiln_service* service, std::int32_t device, const operators::Operator& op,
                                   Result<operators::Problem> problem, kiln_error** error);

// kiln_OPERATOR_prepare.
[[nodiscard]] kiln_status prepare(kiln_service* service, std::int32_t device, const operators::Operator& op,
                                  Result<operators::Problem> problem, const kiln_prepare_options* options,
                                  kiln_plan** plan, kiln_error** error);

// kiln_OPERATOR_launch; `Problem` is the operator's member of TypedProblem.
template <class Problem, class Args>
[[nodiscard]] kiln_status launch(const kiln_plan* plan, void* stream, std::int64_t m,
                                 const Args* args) noexcept {
    static constexpr Args kNothing{};  // M = 0 looks at no argument
    if (plan == nullptr || (args == nullptr && m != 0)) {
        return -KILN_ERROR_INVALID_ARGUMENT;
    }
    if (is_of_parent(plan)) [[unlikely]] {
        return -KILN_ERROR_ENVIRONMENT;
    }
    return service::launch<Problem>(*plan->plan, stream, m, args != nullptr ? *args : kNothing);
}

}  // namespace kiln::api
