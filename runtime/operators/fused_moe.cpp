#include "runtime/operators/fused_moe.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

#include <fmt/format.h>

#include "runtime/operators/demands.hpp"
#include "runtime/operators/fused_moe_derivation_gfx950.hpp"
#include "runtime/operators/fused_moe_mxmoe.hpp"
#include "runtime/operators/fused_moe_small_m.hpp"
#include "runtime/operators/guards.hpp"
#include "runtime/operators/mxmoe_derivation_gfx950.hpp"
#include "runtime/operators/operator.hpp"

namespace kiln::operators {

namespace {

constexpr std::int64_t kMostExperts = 1024;
constexpr std::int64_t kMostSlots = 16;

const std::array<Field, 20> kFields{{
    {"hidden", "columns of x and of the result, a multiple of 128", std::nullopt},
    {"intermediate", "columns between the two stages, a multiple of 64, with fp8 weights of 128",
     std::nullopt},
    {"experts", "experts, 1 to 1024, a fused shared expert included", std::nullopt},
    {"slots", "experts of a token, 1 to 16, a fused shared expert included", std::nullopt},
    {"weights",
     "format of the weights with their scales",
     std::nullopt,
     {"mxfp4", "fp8", "fp8_per_tensor", "fp8_per_row", "mxfp8", "fp8_fnuz", "bf16", "int4"}},
    {"activation", "what lies between the two stages", std::nullopt, {"silu", "gelu", "swiglu_clamped"}},
    {"x_type", "type of the activations", std::nullopt, type_words("bf16")},
    {"x_quantised", "1 when the activations are quantised already", 0},
    {"x_inner_stride", "elements between neighbours in a row of x", 1},
    {"w_layout", "order of the weights in memory", std::nullopt, {"preshuffled", "row_major"}},
    {"gate_up",
     "gate and up rows of w13: gate rows first, or tiles of 16 in turn (mxfp4 only)",
     std::nullopt,
     {"separated", "interleaved"}},
    {"w_scale_layout_other", "1 when the weight scales lie in another order than the format's", 0},
    {"w_scale_strided", "1 when the weight scales are not contiguous", 0},
    {"out_type", "type of the result", std::nullopt, type_words("bf16")},
    {"bias", "1 when biases are to be added", 0},
    {"expert_mask", "1 when a mask says which experts are local", 0},
    {"doweight_stage1", "1 when the routing weights are to be applied in the first stage", 0},
    {"no_combine", "1 when the results of a token's experts are wanted one by one", 0},
    {"num_local_tokens", "1 when the number of tokens stands in device memory", 0},
    {kDeterministic, "1 when two launches with the same input must give the same bits", 0, {}, true},
}};

const Guard kGuards[] = {
    {"activation", std::string("silu"), KILN_DECLINE_ACTIVATION},
    {"x_type", std::string("bf16"), KILN_DECLINE_X_TYPE},
    {"x_quantised", std::int64_t{0}, KILN_DECLINE_X_QUANTISED},
    {"x_inner_stride", std::int64_t{1}, KILN_DECLINE_X_INNER_STRIDE},
    {"w_layout", std::string("preshuffled"), KILN_DECLINE_W_LAYOUT},
    {"w_scale_layout_other", std::int64_t{0}, KILN_DECLINE_W_SCALE_LAYOUT},
    {"w_scale_strided", std::int64_t{0}, KILN_DECLINE_W_SCALE_STRIDE},
    {"out_type", std::string("bf16"), KILN_DECLINE_OUT_TYPE},
    {"bias", std::int64_t{0}, KILN_DECLINE_BIAS},
    {"expert_mask", std::int64_t{0}, KILN_DECLINE_EXPERT_MASK},
    {"doweight_stage1", std::int64_t{0}, KILN_DECLINE_WEIGHTED_STAGE_1},
    {"no_combine", std::int64_t{0}, KILN_DECLINE_NOT_COMBINED},
    {"num_local_tokens", std::int64_t{0}, KILN_DECLINE_LOCAL_TOKENS},
};

constexpr KernelArgument kKernargs[] = {
    {"x", offsetof(FusedMoeKernargs, x), sizeof(FusedMoeKernargs::x)},
    {"w13", offsetof(FusedMoeKernargs, w13), sizeof(FusedMoeKernargs::w13)},
    {"w13_scale", offsetof(FusedMoeKernargs, w13_scale), sizeof(FusedMoeKernargs::w13_scale)},
    {"w2", offsetof(FusedMoeKernargs, w2), sizeof(FusedMoeKernargs::w2)},
    {"w2_scale", offsetof(FusedMoeKernargs, w2_scale), sizeof(FusedMoeKernargs::w2_scale)},
    {"ids", offsetof(FusedMoeKernargs, ids), sizeof(FusedMoeKernargs::ids)},
    {"weights", offsetof(FusedMoeKernargs, weights), sizeof(FusedMoeKernargs::weights)},
    {"out", offsetof(FusedMoeKernargs, out), sizeof(FusedMoeKernargs::out)},
    {"flag", offsetof(FusedMoeKernargs, flag), sizeof(FusedMoeKernargs::flag)},
    {"h", offsetof(FusedMoeKernargs, h), sizeof(FusedMoeKernargs::h)},
    {"m", offsetof(FusedMoeKernargs, m), sizeof(FusedMoeKernargs::m)},
    {"ldx", offsetof(FusedMoeKernargs, ldx), sizeof(FusedMoeKernargs::ldx)},
};

constexpr KernelArgument kMxmoeKernargs[] = {
    {"x", offsetof(MxmoeKernargs, x), sizeof(MxmoeKernargs::x)},
    {"w13", offsetof(MxmoeKernargs, w13), sizeof(MxmoeKernargs::w13)},
    {"w13_scale", offsetof(MxmoeKernargs, w13_scale), sizeof(MxmoeKernargs::w13_scale)},
    {"w2", offsetof(MxmoeKernargs, w2), sizeof(MxmoeKernargs::w2)},
    {"w2_scale", offsetof(MxmoeKernargs, w2_scale), sizeof(MxmoeKernargs::w2_scale)},
    {"ids", offsetof(MxmoeKernargs, ids), sizeof(MxmoeKernargs::ids)},
    {"weights", offsetof(MxmoeKernargs, weights), sizeof(MxmoeKernargs::weights)},
    {"out", offsetof(MxmoeKernargs, out), sizeof(MxmoeKernargs::out)},
    {"flag", offsetof(MxmoeKernargs, flag), sizeof(MxmoeKernargs::flag)},
    {"sorted_ids", offsetof(MxmoeKernargs, sorted_ids), sizeof(MxmoeKernargs::sorted_ids)},
    {"sorted_weights", offsetof(MxmoeKernargs, sorted_weights), sizeof(MxmoeKernargs::sorted_weights)},
    {"sorted_expert_ids", offsetof(MxmoeKernargs, sorted_expert_ids),
     sizeof(MxmoeKernargs::sorted_expert_ids)},
    {"num_valid", offsetof(MxmoeKernargs, num_valid), sizeof(MxmoeKernargs::num_valid)},
    {"x_q", offsetof(MxmoeKernargs, x_q), sizeof(MxmoeKernargs::x_q)},
    {"x_scale", offsetof(MxmoeKernargs, x_scale), sizeof(MxmoeKernargs::x_scale)},
    {"h_q", offsetof(MxmoeKernargs, h_q), sizeof(MxmoeKernargs::h_q)},
    {"h_scale", offsetof(MxmoeKernargs, h_scale), sizeof(MxmoeKernargs::h_scale)},
    {"v", offsetof(MxmoeKernargs, v), sizeof(MxmoeKernargs::v)},
    {"counters", offsetof(MxmoeKernargs, counters), sizeof(MxmoeKernargs::counters)},
    {"m", offsetof(MxmoeKernargs, m), sizeof(MxmoeKernargs::m)},
    {"ldx", offsetof(MxmoeKernargs, ldx), sizeof(MxmoeKernargs::ldx)},
};

// What the format of the weights declines for; 0 when it is served.
int judge_weights(const std::string& weights) {
    if (weights == "mxfp4" || weights == "fp8") {
        return 0;
    }
    // The elements would do, the scales do not.
    return weights == "fp8_per_tensor" || weights == "fp8_per_row" ? KILN_DECLINE_W_SCALE_SHAPE
                                                                   : KILN_DECLINE_W_TYPE;
}

class FusedMoe final : public Operator {
  public:
    std::string_view name() const override { return "fused_moe"; }
    std::span<const Field> fields() const override { return kFields; }
    std::span<const Template* const> templates() const override {
        static const Template* const templates[] = {&fused_moe_small_m_gfx950(), &fused_moe_mxmoe_gfx950(),
                                                    &mxmoe_quantise_gfx950(),    &mxmoe_g1_gfx950(),
                                                    &mxmoe_g2_gfx950(),          &mxmoe_combine_gfx950()};
        return templates;
    }

    Answer<void> judge(const Problem& problem) const override {
        if (Answer<void> passed = check_guards(*this, problem, kGuards); !passed) {
            return passed;
        }
        if (const int decline = judge_weights(std::get<std::string>(problem.find("weights")->second))) {
            return declined(
                static_cast<kiln_decline>(decline), Stage::configure,
                fmt::format("{} {}: {}", name(), format_problem(*this, problem), decline_text(decline)));
        }
        const auto [hidden, intermediate, experts, slots, fp8, interleaved] =
            std::get<FusedMoeProblem>(typed(problem));
        if (fp8 && interleaved) {
            return declined(
                KILN_DECLINE_W_LAYOUT, Stage::configure,
                fmt::format("fused_moe: expected gate_up=separated, which is how fp8 weights lie, found {}",
                            format_problem(*this, problem)));
        }
        const std::int64_t step = fp8 ? 128 : 64;
        if (hidden < 128 || hidden % 128 != 0 || intermediate < step || intermediate % step != 0 ||
            experts < 1 || experts > kMostExperts || slots < 1 || slots > kMostSlots) {
            return declined(
                KILN_DECLINE_DIMENSIONS, Stage::configure,
                fmt::format("fused_moe: expected hidden a multiple of 128, intermediate of {}, experts from "
                            "1 to {} and slots from 1 to {}, found {}",
                            step, kMostExperts, kMostSlots, format_problem(*this, problem)));
        }
        return {};
    }

    TypedProblem typed(const Problem& problem) const override {
        const auto is = [&problem](std::string_view field, const char* word) {
            return problem.find(field)->second == tables::FieldValue(std::string(word));
        };
        return FusedMoeProblem{number(problem, "hidden"),  number(problem, "intermediate"),
                               number(problem, "experts"), number(problem, "slots"),
                               is("weights", "fp8"),       is("gate_up", "interleaved")};
    }

    Result<std::vector<Bucket>> derive(const Problem& problem, const tables::Target& target) const override {
        if (target.processor == "gfx950") {
            Result<std::vector<Bucket>> buckets = derive_fused_moe_small_m_gfx950(problem);
            if (buckets) {
                std::ranges::move(derive_fused_moe_mxmoe_gfx950(problem, buckets->back().max_m),
                                  std::back_inserter(*buckets));
            }
            return buckets;
        }
        return fail(ErrorCode::not_found, Stage::table,
                    fmt::format("fused_moe: expected a processor that constants are derived for, gfx950, "
                                "found {}",
                                target.text()));
    }
};

}  // namespace

const KernargBlock& fused_moe_kernargs() {
    static constexpr KernargBlock block{kKernargs, sizeof(FusedMoeKernargs)};
    return block;
}

const KernargBlock& mxmoe_kernargs() {
    static constexpr KernargBlock block{kMxmoeKernargs, sizeof(MxmoeKernargs)};
    return block;
}

const Operator& fused_moe() {
    static const FusedMoe op;
    return op;
}

}  // namespace kiln::operators
