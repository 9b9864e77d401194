#include "runtime/operators/router.hpp"

#include <array>
#include <cstddef>

#include <fmt/format.h>

#include "runtime/operators/guards.hpp"
#include "runtime/operators/operator.hpp"
#include "runtime/operators/router_one_launch.hpp"

namespace kiln::operators {

namespace {

const std::array<Field, 16> kFields{{
    {"hidden", "columns of x, a multiple of 8", std::nullopt},
    {"experts", "routed experts, 1 to 1024", std::nullopt},
    {"top_k", "experts chosen for a token, 1 to 16", std::nullopt},
    {"shared", "shared experts with a column of the results, 0 or 1", 1},
    {"x_type", "type of the activations", std::nullopt, type_words("bf16")},
    {"x_inner_stride", "elements between neighbours in a row of x", 1},
    {"gate_type", "type of the gates", std::nullopt, type_words("bf16")},
    {"gate_strided", "1 when a gate is not contiguous", 0},
    {"weights_type", "type of the weights that come out", std::nullopt, type_words("fp32")},
    {"scoring", "what becomes of a logit", std::nullopt, {"softmax", "sigmoid"}},
    {"score_bias", "1 when a bias corrects the scores that experts are chosen by", 0},
    {"expert_groups", "groups that the choice is restricted to", 1},
    {"renormalise", "0 when the weights of the chosen are not made to sum to 1", 1},
    {"expert_parallel", "ranks that share the experts out", 1},
    {"expert_map", "1 when ids are mapped to where an expert lies", 0},
    {"simulated", "1 when routing is simulated, not computed", 0},
}};

const Guard kGuards[] = {
    {"x_type", std::string("bf16"), KILN_DECLINE_X_TYPE},
    {"x_inner_stride", std::int64_t{1}, KILN_DECLINE_X_INNER_STRIDE},
    {"gate_type", std::string("bf16"), KILN_DECLINE_W_TYPE},
    {"gate_strided", std::int64_t{0}, KILN_DECLINE_GATE_STRIDE},
    {"weights_type", std::string("fp32"), KILN_DECLINE_OUT_TYPE},
    {"scoring", std::string("softmax"), KILN_DECLINE_SCORING},
    {"score_bias", std::int64_t{0}, KILN_DECLINE_SCORING},
    {"expert_groups", std::int64_t{1}, KILN_DECLINE_SCORING},
    {"renormalise", std::int64_t{1}, KILN_DECLINE_RENORMALISE},
    {"expert_parallel", std::int64_t{1}, KILN_DECLINE_EXPERT_PARALLEL},
    {"expert_map", std::int64_t{0}, KILN_DECLINE_EXPERT_MAP},
    {"simulated", std::int64_t{0}, KILN_DECLINE_SIMULATED_ROUTING},
};

constexpr KernelArgument kKernargs[] = {
    {"x", offsetof(RouterKernargs, x), sizeof(RouterKernargs::x)},
    {"gate", offsetof(RouterKernargs, gate), sizeof(RouterKernargs::gate)},
    {"shared_gate", offsetof(RouterKernargs, shared_gate), sizeof(RouterKernargs::shared_gate)},
    {"ids", offsetof(RouterKernargs, ids), sizeof(RouterKernargs::ids)},
    {"weights", offsetof(RouterKernargs, weights), sizeof(RouterKernargs::weights)},
    {"counters", offsetof(RouterKernargs, counters), sizeof(RouterKernargs::counters)},
    {"scratch", offsetof(RouterKernargs, scratch), sizeof(RouterKernargs::scratch)},
    {"scale", offsetof(RouterKernargs, scale), sizeof(RouterKernargs::scale)},
    {"m", offsetof(RouterKernargs, m), sizeof(RouterKernargs::m)},
    {"ldx", offsetof(RouterKernargs, ldx), sizeof(RouterKernargs::ldx)},
};

class Router final : public Operator {
  public:
    std::string_view name() const override { return "router"; }
    std::span<const Field> fields() const override { return kFields; }
    std::span<const Template* const> templates() const override {
        static const Template* const templates[] = {&router_one_launch_gfx950()};
        return templates;
    }

    Answer<void> judge(const Problem& problem) const override {
        if (Answer<void> passed = check_guards(*this, problem, kGuards); !passed) {
            return passed;
        }
        const auto [hidden, experts, top_k, shared] = std::get<RouterProblem>(typed(problem));
        if (shared < 0 || shared > 1) {
            return declined(KILN_DECLINE_SHARED_EXPERTS, Stage::configure,
                            fmt::format("router: expected shared 0 or 1, found {}", shared));
        }
        if (hidden < 8 || hidden % 8 != 0 || experts < 1 || experts > kRouterMaxExperts || top_k < 1 ||
            top_k > std::min(experts, kRouterMaxTopK)) {
            return declined(
                KILN_DECLINE_DIMENSIONS, Stage::configure,
                fmt::format("router: expected hidden a multiple of 8, experts from 1 to {}, top_k "
                            "from 1 to {} and not above experts, found hidden={} experts={} top_k={}",
                            kRouterMaxExperts, kRouterMaxTopK, hidden, experts, top_k));
        }
        return {};
    }

    TypedProblem typed(const Problem& problem) const override {
        return RouterProblem{number(problem, "hidden"), number(problem, "experts"), number(problem, "top_k"),
                             number(problem, "shared")};
    }

    Result<std::vector<Bucket>> derive(const Problem& problem, const tables::Target& target) const override {
        if (target.processor == "gfx950") {
            return derive_router_one_launch_gfx950(problem);
        }
        return fail(
            ErrorCode::not_found, Stage::table,
            fmt::format("router: expected a processor that constants are derived for, gfx950, found {}",
                        target.text()));
    }
};

}  // namespace

const KernargBlock& router_kernargs() {
    static constexpr KernargBlock block{kKernargs, sizeof(RouterKernargs)};
    return block;
}

const Operator& router() {
    static const Router op;
    return op;
}

}  // namespace kiln::operators
