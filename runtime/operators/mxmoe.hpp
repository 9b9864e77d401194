// What the host knows of a launch of fused_moe/mxmoe: its kernels' arguments, and how the workspace is shared
// out. The contract of the kernels is kernel_src/fused_moe/README.md.
#pragma once

#include <cstdint>

#include "runtime/operators/mxmoe_bucket.hpp"

namespace kiln::operators {

// The kernels' explicit arguments, naturally aligned: what the code object's metadata must say too. Null
// where a bucket has no use for an array.
struct MxmoeKernargs {
    const void* x;
    const void* w13;
    const void* w13_scale;
    const void* w2;
    const void* w2_scale;
    const std::int32_t* ids;
    const float* weights;
    void* out;
    std::int32_t* flag;  // never null
    const std::int32_t* sorted_ids;
    const float* sorted_weights;
    const std::int32_t* sorted_expert_ids;
    const std::int32_t* num_valid;
    void* x_q;
    void* x_scale;
    void* h_q;
    void* h_scale;
    void* v;
    void* counters;
    std::int32_t m;
    std::int32_t ldx;  // elements
};
static_assert(sizeof(MxmoeKernargs) == 160);

// Where the arrays of a launch lie in the two parts of its workspace, in bytes. What a bucket has no use for
// has no room, and lies where the next begins. Sizes grow with m.
struct MxmoeWorkspace {
    // Zero between launches; the same for every m.
    static constexpr std::int64_t kSortCounter = 0;
    static constexpr std::int64_t kCounters = 256;  // of the work-groups that come last
    std::int64_t zeroed = 0;

    // In the scratch.
    std::int64_t sort = 0;  // of moe_sort/general
    std::int64_t sorted_ids = 0, sorted_weights = 0, sorted_expert_ids = 0, num_valid = 0;
    std::int64_t x_q = 0, x_scale = 0;
    std::int64_t h_q = 0, h_scale = 0;
    std::int64_t v = 0;
    std::int64_t flag = 0;  // takes what nobody wants to know
    std::int64_t scratch = 0;
};

[[nodiscard]] MxmoeWorkspace mxmoe_workspace(const MxmoeBucket& bucket, std::int64_t hidden,
                                             std::int64_t intermediate, std::int64_t experts,
                                             std::int64_t slots, std::int64_t m);

}  // namespace kiln::operators
