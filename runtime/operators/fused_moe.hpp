// The operator `fused_moe`: its problem, the arguments of its kernels, and the checks of a launch.
//
// The mathematics, the layouts and the meaning of every field stand in the public header (kiln/fused_moe.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kiln/kiln.h"
#include "runtime/operators/kernel_launch.hpp"
#include "runtime/operators/launch_checks.hpp"

namespace kiln::operators {

class Operator;

// The dimensions that a launch looks at. Everything else was judged when the problem was asked for.
struct FusedMoeProblem {
    std::int64_t hidden = 0;
    std::int64_t intermediate = 0;
    std::int64_t experts = 0;
    std::int64_t slots = 0;
    bool fp8 = false;          // else mxfp4
    bool interleaved = false;  // gate and up rows of w13 alternate in tiles of 16
};

// The kernels' explicit arguments, naturally aligned: what the code object's metadata must say too.
struct FusedMoeKernargs {
    const void* x;
    const void* w13;
    const void* w13_scale;
    const void* w2;
    const void* w2_scale;
    const std::int32_t* ids;
    const float* weights;
    void* out;
    std::int32_t* flag;  // never null
    void* h;             // scratch of fused_moe_h_bytes()
    std::int32_t m;
    std::int32_t ldx;  // elements
};
static_assert(sizeof(FusedMoeKernargs) == 88);

// The intermediate, bf16 [m * slots, intermediate] in an order that the kernels choose.
[[nodiscard]] constexpr std::int64_t fused_moe_h_bytes(std::int64_t intermediate, std::int64_t slots,
                                                       std::int64_t m) {
    return m * slots * intermediate * 2;
}
// Kernels reach 64 rows of x by 32-bit byte offsets, to which those of lanes without work add.
inline constexpr std::int64_t kFusedMoeMaxRowStride = std::int64_t{1} << 24;

// Behind it in the scratch: the word that takes the flag where the caller wants none. In front of it would do
// no good to the alignment of what is read most.
inline constexpr std::int64_t kFusedMoeFlagBytes = 16;

// What a launch may still decline for, M, the workspace and the device aside; 0 when nothing.
[[nodiscard]] inline int check_launch(const FusedMoeProblem& problem, std::int64_t /*m*/,
                                      const kiln_fused_moe_args& args) {
    if (args.x == nullptr || args.w13 == nullptr || args.w13_scale == nullptr || args.w2 == nullptr ||
        args.w2_scale == nullptr || args.ids == nullptr || args.weights == nullptr || args.out == nullptr) {
        return KILN_DECLINE_NULL_POINTER;
    }
    if (const int decline = check_rows(args.x, args.ldx, problem.hidden, kFusedMoeMaxRowStride)) {
        return decline;
    }
    if (is_misaligned(args.w13, 16) || is_misaligned(args.w2, 16)) {
        return KILN_DECLINE_W_ALIGNMENT;
    }
    if (is_misaligned(args.w13_scale, 4) || is_misaligned(args.w2_scale, 4)) {
        return KILN_DECLINE_W_SCALE_ALIGNMENT;
    }
    if (is_misaligned(args.ids, 4)) {
        return KILN_DECLINE_IDS_ALIGNMENT;
    }
    if (is_misaligned(args.weights, 4)) {
        return KILN_DECLINE_WEIGHTS_ALIGNMENT;
    }
    if (is_misaligned(args.out, 16)) {
        return KILN_DECLINE_OUT_ALIGNMENT;
    }
    if (is_misaligned(args.invalid_id, 4)) {
        return KILN_DECLINE_FLAG_ALIGNMENT;
    }
    return KILN_OK;
}

[[nodiscard]] inline FusedMoeKernargs pack(const FusedMoeProblem& problem, std::int64_t m,
                                           const kiln_fused_moe_args& args, const Workspace& workspace) {
    auto* h = static_cast<std::byte*>(workspace.scratch);
    auto* unwanted = h + fused_moe_h_bytes(problem.intermediate, problem.slots, m);
    return {args.x,
            args.w13,
            args.w13_scale,
            args.w2,
            args.w2_scale,
            args.ids,
            args.weights,
            args.out,
            args.invalid_id != nullptr ? args.invalid_id : reinterpret_cast<std::int32_t*>(unwanted),
            h,
            static_cast<std::int32_t>(m),
            static_cast<std::int32_t>(args.ldx)};
}

// The same as a list.
[[nodiscard]] const KernargBlock& fused_moe_kernargs();

[[nodiscard]] const Operator& fused_moe();

}  // namespace kiln::operators
