#include "runtime/api/operator.hpp"
#include "runtime/api/problem.hpp"

namespace {

using kiln::Result;
using kiln::api::guarded;
using kiln::operators::fused_moe;
using kiln::operators::Problem;

constexpr const char* kWeights[] = {nullptr,    "mxfp4", "fp8", "fp8_per_tensor", "fp8_per_row", "mxfp8",
                                    "fp8_fnuz", "bf16",  "int4"};
constexpr const char* kGateUp[] = {nullptr, "separated", "interleaved"};
constexpr const char* kActivations[] = {nullptr, "silu", "gelu", "swiglu_clamped"};

Result<Problem> to_problem(const kiln_fused_moe* given) {
    const Result<kiln_fused_moe> read = kiln::api::read_problem(given, KILN_FUSED_MOE_INIT, "kiln_fused_moe");
    if (!read) {
        return tl::unexpected(read.error());
    }
    return kiln::api::ProblemBuilder()
        .number("hidden", read->hidden)
        .number("intermediate", read->intermediate)
        .number("experts", read->experts)
        .number("slots", read->slots)
        .word("weights", kWeights, read->weights)
        .word("activation", kActivations, read->activation)
        .word("x_type", kiln::api::kDtypes, read->x_type)
        .word("out_type", kiln::api::kDtypes, read->out_type)
        .word("w_layout", kiln::api::kWeightLayouts, read->w_layout)
        .flag("w_scale_layout_other", read->w_scale_layout_other)
        .flag("w_scale_strided", read->w_scale_strided)
        .flag("x_quantised", read->x_quantised)
        .flag("bias", read->bias)
        .flag("expert_mask", read->expert_mask)
        .flag("doweight_stage1", read->doweight_stage1)
        .flag("no_combine", read->no_combine)
        .flag("num_local_tokens", read->num_local_tokens)
        .number("x_inner_stride", read->x_inner_stride == 0 ? 1 : read->x_inner_stride)
        .word("gate_up", kGateUp, read->gate_up)
        .flag("deterministic", read->deterministic)
        .take(fused_moe());
}

}  // namespace

extern "C" {

kiln_status kiln_fused_moe_supports(kiln_service* service, int32_t device, const kiln_fused_moe* problem,
                                    kiln_error** error) {
    return guarded(
        error, [&] { return kiln::api::supports(service, device, fused_moe(), to_problem(problem), error); });
}

kiln_status kiln_fused_moe_prepare(kiln_service* service, int32_t device, const kiln_fused_moe* problem,
                                   const kiln_prepare_options* options, kiln_plan** plan,
                                   kiln_error** error) {
    return guarded(error, [&] {
        return kiln::api::prepare(service, device, fused_moe(), to_problem(problem), options, plan, error);
    });
}

kiln_status kiln_fused_moe_launch(const kiln_plan* plan, void* stream, int64_t m,
                                  const kiln_fused_moe_args* args) {
    return kiln::api::launch<kiln::operators::FusedMoeProblem>(plan, stream, m, args);
}

}  // extern "C"
