// The operator `linear`: its problem, the arguments of its kernel, and the checks of a launch.
//
// The mathematics, the layouts and the meaning of every field stand in the public header (kiln/linear.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kiln/kiln.h"
#include "runtime/operators/kernel_launch.hpp"
#include "runtime/operators/launch_checks.hpp"

namespace kiln::operators {

class Operator;

// The dimensions that a launch looks at. Everything else was judged when the problem was asked for.
struct LinearProblem {
    std::int64_t n = 0;
    std::int64_t k = 0;
};

// The kernel's explicit arguments, naturally aligned: what the code object's metadata must say too.
struct LinearKernargs {
    const void* x;
    const void* w;
    const float* w_scale;
    void* out;
    std::int32_t m;
    std::int32_t ldx;  // elements
};
static_assert(sizeof(LinearKernargs) == 40);

// What a launch may still decline for, M and the device aside; 0 when nothing.
[[nodiscard]] inline int check_launch(const LinearProblem& problem, std::int64_t /*m*/,
                                      const kiln_linear_args& args) {
    if (args.x == nullptr || args.w == nullptr || args.w_scale == nullptr || args.out == nullptr) {
        return KILN_DECLINE_NULL_POINTER;
    }
    if (const int decline = check_rows(args.x, args.ldx, problem.k); decline != KILN_OK) {
        return decline;
    }
    if (is_misaligned(args.w, 16)) {
        return KILN_DECLINE_W_ALIGNMENT;
    }
    if (is_misaligned(args.w_scale, 4)) {
        return KILN_DECLINE_W_SCALE_ALIGNMENT;
    }
    if (is_misaligned(args.out, 16)) {
        return KILN_DECLINE_OUT_ALIGNMENT;
    }
    return KILN_OK;
}

[[nodiscard]] inline LinearKernargs pack(const LinearProblem& /*problem*/, std::int64_t m,
                                         const kiln_linear_args& args) {
    return {args.x,
            args.w,
            args.w_scale,
            args.out,
            static_cast<std::int32_t>(m),
            static_cast<std::int32_t>(args.ldx)};
}

// The same as a list.
[[nodiscard]] const KernargBlock& linear_kernargs();

[[nodiscard]] const Operator& linear();

}  // namespace kiln::operators
