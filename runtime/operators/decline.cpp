#include "runtime/operators/decline.hpp"

namespace kiln::operators {

namespace {

constexpr DeclineWords kWords[] = {
    {KILN_DECLINE_SHAPE, "shape", "no row of the shape tables has these dimensions"},
    {KILN_DECLINE_PROCESSOR, "processor", "no row of the shape tables is for the processor of this device"},
    {KILN_DECLINE_TARGET_FEATURE, "target_feature",
     "the rows for this processor pin a feature that the device has otherwise"},
    {KILN_DECLINE_SWITCHED_OFF, "switched_off", "KILN_DISABLE or the configuration takes it out"},
    {KILN_DECLINE_DISABLED, "disabled", "a build, a load or a launch of it failed earlier"},
    {KILN_DECLINE_COMPILER, "compiler", "the compiler at hand can not build for the target"},
    {KILN_DECLINE_DIMENSIONS, "dimensions", "the operator's layouts do not allow these dimensions"},
    {KILN_DECLINE_X_TYPE, "x_type", "the activations are of a type that is not served"},
    {KILN_DECLINE_X_QUANTISED, "x_quantised", "the activations are quantised already"},
    {KILN_DECLINE_X_INNER_STRIDE, "x_inner_stride", "neighbours in a row of x are not adjacent in memory"},
    {KILN_DECLINE_W_TYPE, "w_type", "the weights are of a type that is not served"},
    {KILN_DECLINE_W_LAYOUT, "w_layout", "the weights are not preshuffled"},
    {KILN_DECLINE_W_SCALE_TYPE, "w_scale_type", "the weight scales are of a type that is not served"},
    {KILN_DECLINE_W_SCALE_SHAPE, "w_scale_shape",
     "the weight scales are of a granularity that is not served"},
    {KILN_DECLINE_W_SCALE_STRIDE, "w_scale_stride", "the weight scales are not contiguous"},
    {KILN_DECLINE_OUT_TYPE, "out_type", "the results are wanted in a type that is not served"},
    {KILN_DECLINE_BIAS, "bias", "a bias is to be added"},
    {KILN_DECLINE_SHARED_EXPERTS, "shared_experts", "there are more shared experts than are served"},
    {KILN_DECLINE_RENORMALISE, "renormalise", "the weights of the chosen experts are not renormalised"},
    {KILN_DECLINE_EXPERT_PARALLEL, "expert_parallel", "ranks share the experts out"},
    {KILN_DECLINE_EXPERT_MAP, "expert_map", "ids are mapped to where an expert lies"},
    {KILN_DECLINE_SIMULATED_ROUTING, "simulated_routing", "routing is simulated, not computed"},
    {KILN_DECLINE_SCORING, "scoring", "experts are scored, or chosen by their scores, in another way"},
    {KILN_DECLINE_EXPERT_MASK, "expert_mask", "a mask says which experts are local"},
    {KILN_DECLINE_LOCAL_TOKENS, "local_tokens", "the number of tokens is counted on the device"},
    {KILN_DECLINE_ACTIVATION, "activation", "the activation between the stages is one that is not served"},
    {KILN_DECLINE_WEIGHTED_STAGE_1, "weighted_stage_1",
     "the routing weights are to be applied in the first stage"},
    {KILN_DECLINE_NOT_COMBINED, "not_combined", "the results of a token's experts are wanted one by one"},
    {KILN_DECLINE_W_SCALE_LAYOUT, "w_scale_layout",
     "the weight scales are in another order than the weights' format has"},
    {KILN_DECLINE_GATE_STRIDE, "gate_stride", "a gate is not contiguous"},
    {KILN_DECLINE_NOT_DETERMINISTIC, "not_deterministic",
     "the same bits are demanded run after run, and the row has no kernel that gives them"},
    {KILN_DECLINE_M_NEGATIVE, "m_negative", "M is below 0"},
    {KILN_DECLINE_M_TOO_LARGE, "m_too_large", "M is above the last bucket"},
    {KILN_DECLINE_NULL_POINTER, "null_pointer", "an array, or a workspace that is needed, is null"},
    {KILN_DECLINE_X_ALIGNMENT, "x_alignment", "x is not aligned to 16 bytes"},
    {KILN_DECLINE_X_ROW_STRIDE, "x_row_stride",
     "the row stride of x is below its columns, not a multiple of 8, or too large"},
    {KILN_DECLINE_W_ALIGNMENT, "w_alignment", "w is not aligned to 16 bytes"},
    {KILN_DECLINE_W_SCALE_ALIGNMENT, "w_scale_alignment", "w_scale is not aligned to 4 bytes"},
    {KILN_DECLINE_OUT_ALIGNMENT, "out_alignment", "out is not aligned to 16 bytes"},
    {KILN_DECLINE_OTHER_DEVICE, "other_device", "the calling thread's current device is not the plan's"},
    {KILN_DECLINE_COMPILING, "compiling", "the bucket of this M is not ready yet"},
    {KILN_DECLINE_CAPTURE, "capture",
     "the first use of a bucket, or of a workspace, needs what a stream can not capture"},
    {KILN_DECLINE_IDS_ALIGNMENT, "ids_alignment", "ids are not aligned to 4 bytes"},
    {KILN_DECLINE_WEIGHTS_ALIGNMENT, "weights_alignment", "the routing weights are not aligned to 4 bytes"},
    {KILN_DECLINE_WORKSPACE_ALIGNMENT, "workspace_alignment", "the workspace is not aligned to 256 bytes"},
    {KILN_DECLINE_SORTED_ALIGNMENT, "sorted_alignment",
     "sorted_ids or sorted_weights is not aligned to 16 bytes, or sorted_expert_ids or num_valid to 4"},
    {KILN_DECLINE_MOE_BUF_ALIGNMENT, "moe_buf_alignment", "moe_buf is not aligned to 16 bytes"},
    {KILN_DECLINE_Q_ALIGNMENT, "q_alignment", "q is not aligned to 16 bytes"},
    {KILN_DECLINE_Q_SCALE_ALIGNMENT, "q_scale_alignment", "q_scale is not aligned to 4 bytes"},
    {KILN_DECLINE_GATE_ALIGNMENT, "gate_alignment", "a gate is not aligned to 16 bytes"},
    {KILN_DECLINE_FLAG_ALIGNMENT, "flag_alignment", "the flag for invalid ids is not aligned to 4 bytes"},
};

const DeclineWords* find(int decline) {
    for (const DeclineWords& words : kWords) {
        if (words.value == decline) {
            return &words;
        }
    }
    return nullptr;
}

}  // namespace

std::span<const DeclineWords> all_declines() {
    return kWords;
}

const char* decline_name(int decline) {
    const DeclineWords* words = find(decline);
    return words != nullptr ? words->name : "unknown";
}

const char* decline_text(int decline) {
    const DeclineWords* words = find(decline);
    return words != nullptr ? words->text : "unknown reason";
}

}  // namespace kiln::operators
