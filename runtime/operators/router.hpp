// The operator `router`: its problem, the arguments of its kernel, and the checks of a launch.
//
// The mathematics and the meaning of every field stand in the public header (kiln/router.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kiln/kiln.h"
#include "runtime/operators/kernel_launch.hpp"
#include "runtime/operators/launch_checks.hpp"

namespace kiln::operators {

class Operator;

// The dimensions. Everything else was judged when the problem was asked for.
struct RouterProblem {
    std::int64_t hidden = 0;
    std::int64_t experts = 0;
    std::int64_t top_k = 0;
    std::int64_t shared = 0;

    [[nodiscard]] constexpr std::int64_t columns() const { return top_k + shared; }  // of the results
};

inline constexpr std::int64_t kRouterMaxExperts = 1024;
inline constexpr std::int64_t kRouterMaxTopK = 16;

// The kernel's explicit arguments, naturally aligned: what the code object's metadata must say too.
struct RouterKernargs {
    const void* x;
    const void* gate;
    const void* shared_gate;
    std::int32_t* ids;
    float* weights;
    void* counters;
    void* scratch;
    float scale;
    std::int32_t m;
    std::int32_t ldx;  // elements
};
static_assert(sizeof(RouterKernargs) == 72);

// What a launch may still decline for, M, the workspace and the device aside; 0 when nothing.
[[nodiscard]] inline int check_launch(const RouterProblem& problem, std::int64_t /*m*/,
                                      const kiln_router_args& args) {
    const bool shared_is_null = problem.shared != 0 && args.shared_gate == nullptr;
    if (args.x == nullptr || args.gate == nullptr || shared_is_null || args.ids == nullptr ||
        args.weights == nullptr) {
        return KILN_DECLINE_NULL_POINTER;
    }
    if (const int decline = check_rows(args.x, args.ldx, problem.hidden); decline != KILN_OK) {
        return decline;
    }
    if (is_misaligned(args.gate, 16) || (problem.shared != 0 && is_misaligned(args.shared_gate, 16))) {
        return KILN_DECLINE_GATE_ALIGNMENT;
    }
    if (is_misaligned(args.ids, 4)) {
        return KILN_DECLINE_IDS_ALIGNMENT;
    }
    if (is_misaligned(args.weights, 4)) {
        return KILN_DECLINE_WEIGHTS_ALIGNMENT;
    }
    return KILN_OK;
}

[[nodiscard]] inline RouterKernargs pack(const RouterProblem& /*problem*/, std::int64_t m,
                                         const kiln_router_args& args, const Workspace& workspace) {
    return {args.x,
            args.gate,
            args.shared_gate,
            args.ids,
            args.weights,
            workspace.zeroed,
            workspace.scratch,
            args.scale,
            static_cast<std::int32_t>(m),
            static_cast<std::int32_t>(args.ldx)};
}

// The same as a list.
[[nodiscard]] const KernargBlock& router_kernargs();

[[nodiscard]] const Operator& router();

}  // namespace kiln::operators
