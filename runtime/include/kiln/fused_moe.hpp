// kiln, the operator fused_moe in C++. Part of kiln.hpp.
#ifndef KILN_FUSED_MOE_HPP_
#define KILN_FUSED_MOE_HPP_

#include <cstdint>

#include "kiln/kiln.hpp"

namespace kiln {
inline namespace KILN_INTERFACE {

enum class MoeWeights : std::int32_t {
    operator_default = KILN_MOE_WEIGHTS_DEFAULT,
    mxfp4 = KILN_MOE_WEIGHTS_MXFP4,
    fp8 = KILN_MOE_WEIGHTS_FP8,
    fp8_per_tensor = KILN_MOE_WEIGHTS_FP8_PER_TENSOR,
    fp8_per_row = KILN_MOE_WEIGHTS_FP8_PER_ROW,
    mxfp8 = KILN_MOE_WEIGHTS_MXFP8,
    fp8_fnuz = KILN_MOE_WEIGHTS_FP8_FNUZ,
    bf16 = KILN_MOE_WEIGHTS_BF16,
    int4 = KILN_MOE_WEIGHTS_INT4,
};

enum class Activation : std::int32_t {
    operator_default = KILN_ACTIVATION_DEFAULT,
    silu = KILN_ACTIVATION_SILU,
    gelu = KILN_ACTIVATION_GELU,
    swiglu_clamped = KILN_ACTIVATION_SWIGLU_CLAMPED,
};

enum class GateUp : std::int32_t {
    operator_default = KILN_GATE_UP_DEFAULT,
    separated = KILN_GATE_UP_SEPARATED,
    interleaved = KILN_GATE_UP_INTERLEAVED,
};

// The experts of a mixture-of-experts layer; the mathematics and the layouts stand in fused_moe.h.
struct FusedMoe {
    // The arrays of one launch.
    struct Args {
        const void* x = nullptr;    // bf16 [M, H]
        std::int64_t ldx = 0;       // elements between rows of x
        const void* w13 = nullptr;  // [E, 2I, H]
        const void* w13_scale = nullptr;
        const void* w2 = nullptr;  // [E, H, I]
        const void* w2_scale = nullptr;
        const std::int32_t* ids = nullptr;   // [M, S]
        const float* weights = nullptr;      // [M, S]
        void* out = nullptr;                 // bf16 [M, H]
        std::int32_t* invalid_id = nullptr;  // optional
        void* workspace = nullptr;           // Plan::workspace_bytes, Plan::init_workspace
    };

    std::int64_t hidden = 0;
    std::int64_t intermediate = 0;
    std::int64_t experts = 0;
    std::int64_t slots = 0;
    MoeWeights weights = MoeWeights::operator_default;
    Activation activation = Activation::operator_default;
    Dtype x_type = Dtype::operator_default;
    Dtype out_type = Dtype::operator_default;
    WeightLayout w_layout = WeightLayout::operator_default;
    bool w_scale_layout_other = false;
    bool w_scale_strided = false;
    bool x_quantised = false;
    bool bias = false;
    bool expert_mask = false;
    bool doweight_stage1 = false;
    bool no_combine = false;
    bool num_local_tokens = false;
    std::int64_t x_inner_stride = 1;
    GateUp gate_up = GateUp::operator_default;
    bool deterministic = false;

    // The same in C, and the C functions behind supports(), prepare() and launch().
    [[nodiscard]] kiln_fused_moe c_problem() const {
        kiln_fused_moe c = KILN_FUSED_MOE_INIT;
        c.hidden = hidden;
        c.intermediate = intermediate;
        c.experts = experts;
        c.slots = slots;
        c.weights = static_cast<std::int32_t>(weights);
        c.activation = static_cast<std::int32_t>(activation);
        c.x_type = static_cast<std::int32_t>(x_type);
        c.out_type = static_cast<std::int32_t>(out_type);
        c.w_layout = static_cast<std::int32_t>(w_layout);
        c.w_scale_layout_other = w_scale_layout_other ? 1 : 0;
        c.w_scale_strided = w_scale_strided ? 1 : 0;
        c.x_quantised = x_quantised ? 1 : 0;
        c.bias = bias ? 1 : 0;
        c.expert_mask = expert_mask ? 1 : 0;
        c.doweight_stage1 = doweight_stage1 ? 1 : 0;
        c.no_combine = no_combine ? 1 : 0;
        c.num_local_tokens = num_local_tokens ? 1 : 0;
        c.x_inner_stride = x_inner_stride;
        c.gate_up = static_cast<std::int32_t>(gate_up);
        c.deterministic = deterministic ? 1 : 0;
        return c;
    }
    static kiln_status c_supports(kiln_service* service, std::int32_t device, const FusedMoe& problem,
                                  kiln_error** error) {
        const kiln_fused_moe c = problem.c_problem();
        return kiln_fused_moe_supports(service, device, &c, error);
    }
    static kiln_status c_prepare(kiln_service* service, std::int32_t device, const FusedMoe& problem,
                                 const kiln_prepare_options* options, kiln_plan** plan, kiln_error** error) {
        const kiln_fused_moe c = problem.c_problem();
        return kiln_fused_moe_prepare(service, device, &c, options, plan, error);
    }
    static kiln_status c_launch(const kiln_plan* plan, void* stream, std::int64_t m, const Args& args) {
        const kiln_fused_moe_args c{args.x,   args.ldx,        args.w13,      args.w13_scale,
                                    args.w2,  args.w2_scale,   args.ids,      args.weights,
                                    args.out, args.invalid_id, args.workspace};
        return kiln_fused_moe_launch(plan, stream, m, &c);
    }
};

}  // namespace KILN_INTERFACE
}  // namespace kiln

#endif  // KILN_FUSED_MOE_HPP_
