// The operator `fused_moe`: its problem, the arguments of its kernels, and the checks of a launch.
//
// The mathematics, the layouts and the meaning of every field stand in the public header (kiln/fused_moe.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "kiln/kiln.h"
#include "runtime/operators/kernel_launch.hpp"
#include "runtime/operators/launch_checks.hpp"
#include "runtime/operators/moe_sort.hpp"
#include "runtime/operators/mxmoe.hpp"
#include "runtime/operators/template.hpp"

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
// Kernels reach all of x by 32-bit byte offsets, and the 64 rows of small_m by such as those of lanes without
// work add to.
inline constexpr std::int64_t kFusedMoeMaxRowStride = std::int64_t{1} << 24;
inline constexpr std::int64_t kFusedMoeMostBytesOfX = (std::int64_t{1} << 31) - 1;

// Behind it in the scratch: the word that takes the flag where the caller wants none. In front of it would do
// no good to the alignment of what is read most.
inline constexpr std::int64_t kFusedMoeFlagBytes = 16;

// What a launch may still decline for, M, the workspace and the device aside; 0 when nothing.
[[nodiscard]] inline int check_launch(const FusedMoeProblem& problem, std::int64_t m,
                                      const kiln_fused_moe_args& args) {
    if (args.x == nullptr || args.w13 == nullptr || args.w13_scale == nullptr || args.w2 == nullptr ||
        args.w2_scale == nullptr || args.ids == nullptr || args.weights == nullptr || args.out == nullptr) {
        return KILN_DECLINE_NULL_POINTER;
    }
    if (const int decline = check_rows(args.x, args.ldx, problem.hidden, kFusedMoeMaxRowStride)) {
        return decline;
    }
    if ((m - 1) * args.ldx + problem.hidden > kFusedMoeMostBytesOfX / 2) {
        return KILN_DECLINE_X_ROW_STRIDE;
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

// What a launch packs: the arguments of the kernels of every template, of which a bucket needs some.
struct FusedMoeBlock {
    FusedMoeKernargs small_m;
    MoeSortKernargs sort;
    MxmoeKernargs mxmoe;
};

[[nodiscard]] inline FusedMoeKernargs pack_small_m(const FusedMoeProblem& problem, std::int64_t m,
                                                   const kiln_fused_moe_args& args,
                                                   const Workspace& workspace) {
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

inline void pack_mxmoe(const FusedMoeProblem& problem, const MxmoeBucket& bucket, std::int64_t m,
                       const kiln_fused_moe_args& args, const Workspace& workspace, FusedMoeBlock& block) {
    const MxmoeWorkspace at =
        mxmoe_workspace(bucket, problem.hidden, problem.intermediate, problem.experts, problem.slots, m);
    auto* const zeroed = static_cast<std::byte*>(workspace.zeroed);
    auto* const scratch = static_cast<std::byte*>(workspace.scratch);
    const auto ints = [scratch](std::int64_t offset) {
        return reinterpret_cast<std::int32_t*>(scratch + offset);
    };
    auto* const sorted_weights = reinterpret_cast<float*>(scratch + at.sorted_weights);
    block.sort = {args.ids,
                  args.weights,
                  nullptr,
                  ints(at.sorted_ids),
                  sorted_weights,
                  ints(at.sorted_expert_ids),
                  ints(at.num_valid),
                  bucket.sum == MxmoeSum::atomic ? args.out : nullptr,  // to be zeroed
                  nullptr,
                  nullptr,
                  zeroed + MxmoeWorkspace::kSortCounter,
                  scratch + at.sort,
                  static_cast<std::int32_t>(m),
                  0};
    const bool has_copy = !bucket.f16in;
    block.mxmoe = {args.x,
                   args.w13,
                   args.w13_scale,
                   args.w2,
                   args.w2_scale,
                   args.ids,
                   args.weights,
                   args.out,
                   args.invalid_id != nullptr ? args.invalid_id : ints(at.flag),
                   ints(at.sorted_ids),
                   sorted_weights,
                   ints(at.sorted_expert_ids),
                   ints(at.num_valid),
                   has_copy ? scratch + at.x_q : nullptr,
                   has_copy ? scratch + at.x_scale : nullptr,
                   scratch + at.h_q,
                   scratch + at.h_scale,
                   bucket.sum != MxmoeSum::atomic ? scratch + at.v : nullptr,
                   bucket.sum == MxmoeSum::fused ? zeroed + MxmoeWorkspace::kCounters : nullptr,
                   static_cast<std::int32_t>(m),
                   static_cast<std::int32_t>(args.ldx)};
}

[[nodiscard]] inline FusedMoeBlock pack(const FusedMoeProblem& problem, std::int64_t m,
                                        const kiln_fused_moe_args& args, const Workspace& workspace,
                                        const TypedBucket& bucket) {
    FusedMoeBlock block{};
    if (const auto* mxmoe = std::get_if<MxmoeBucket>(&bucket)) {
        pack_mxmoe(problem, *mxmoe, m, args, workspace, block);
    } else {
        block.small_m = pack_small_m(problem, m, args, workspace);
    }
    return block;
}

// The same as lists.
[[nodiscard]] const KernargBlock& fused_moe_kernargs();
[[nodiscard]] const KernargBlock& mxmoe_kernargs();

[[nodiscard]] const Operator& fused_moe();

}  // namespace kiln::operators
