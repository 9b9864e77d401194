// The launch of any operator, with the plan's type checked: kiln_OPERATOR_launch but for the handles.
#pragma once

#include <cstdint>
#include <variant>

#include "runtime/service/plan.hpp"

namespace kiln::service {

template <class Problem, class Args>
[[nodiscard]] auto packed(const Problem& problem, std::int64_t m, const Args& args, const Plan& plan,
                          const PlanBucket& bucket) noexcept {
    if constexpr (requires { args.workspace; }) {
        const operators::Workspace workspace = plan.split_workspace(args.workspace);
        if constexpr (requires { pack(problem, m, args, workspace, bucket.typed); }) {
            return pack(problem, m, args, workspace, bucket.typed);
        } else {
            return pack(problem, m, args, workspace);
        }
    } else {
        return pack(problem, m, args);
    }
}

// `Problem` is the operator's member of TypedProblem. Beside it stand check_launch(problem, m, args), which
// says what a launch declines for, and pack(problem, m, args), which makes the block of arguments that holds
// those of every template of the operator. Where `Args` has a workspace, pack() gets its parts as a fourth
// argument, and, where it takes a fifth, the bucket.
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
    const PlanBucket* const bucket = plan.bucket_for(m);
    if constexpr (requires { args.workspace; }) {
        if (const kiln_status decline = plan.check_workspace(bucket, args.workspace); decline != KILN_OK) {
            return plan.declined(decline);
        }
    }
    if (bucket == nullptr) {
        return plan.declined(KILN_DECLINE_M_TOO_LARGE);
    }
    auto kernargs = packed(*problem, m, args, plan, *bucket);
    return plan.enqueue(*bucket, stream, m, &kernargs);
}

}  // namespace kiln::service
