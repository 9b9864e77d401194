// The launch of any operator, with the plan's type checked: kiln_OPERATOR_launch but for the handles.
#pragma once

#include <cstdint>
#include <variant>

#include "runtime/service/plan.hpp"

namespace kiln::service {

// `Problem` is the operator's member of TypedProblem. Beside it stand check_launch(problem, m, args), which
// says what a launch declines for, and pack(problem, m, args), which makes the argument block that every
// kernel of the operator takes. Where `Args` has a workspace, pack() gets its parts as a fourth argument.
template <class Problem, class Args>
[[nodiscard]] kiln_status launch(const Plan& plan, device::Stream stream, std::int64_t m,
                                 const Args& args) noexcept {
    const auto* problem = std::get_if<Problem>(&plan.typed());
    if (problem == nullptr) {
        return -KILN_ERROR_INVALID_ARGUMENT;
    }
    if (m <= 0) {
        return m == 0 ? KILN_OK : plan.declined(KILN_DECLINE_M_NEGATIVE);
    }
    if (const int decline = check_launch(*problem, m, args); decline != KILN_OK) {
        return plan.declined(decline);
    }
    if constexpr (requires { args.workspace; }) {
        if (const kiln_status decline = plan.check_workspace(m, args.workspace); decline != KILN_OK) {
            return plan.declined(decline);
        }
        auto kernargs = pack(*problem, m, args, plan.split_workspace(args.workspace));
        return plan.enqueue(stream, m, &kernargs, sizeof(kernargs));
    } else {
        auto kernargs = pack(*problem, m, args);
        return plan.enqueue(stream, m, &kernargs, sizeof(kernargs));
    }
}

}  // namespace kiln::service
