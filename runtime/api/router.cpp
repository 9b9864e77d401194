#include "runtime/api/operator.hpp"
#include "runtime/api/problem.hpp"

namespace {

using kiln::Result;
using kiln::api::guarded;
using kiln::operators::Problem;
using kiln::operators::router;

constexpr const char* kScorings[] = {nullptr, "softmax", "sigmoid"};

// Zero, where it means that there is one.
std::int64_t one_of_none(std::int64_t value) {
    return value == 0 ? 1 : value;
}

Result<Problem> to_problem(const kiln_router* given) {
    const Result<kiln_router> read = kiln::api::read_problem(given, KILN_ROUTER_INIT, "kiln_router");
    if (!read) {
        return tl::unexpected(read.error());
    }
    return kiln::api::ProblemBuilder()
        .number("hidden", read->hidden)
        .number("experts", read->experts)
        .number("top_k", read->top_k)
        .number("shared", read->shared)
        .word("x_type", kiln::api::kDtypes, read->x_type)
        .word("gate_type", kiln::api::kDtypes, read->gate_type)
        .word("weights_type", kiln::api::kDtypes, read->weights_type)
        .word("scoring", kScorings, read->scoring)
        .flag("score_bias", read->score_bias)
        .number("expert_groups", one_of_none(read->expert_groups))
        .number("renormalise", read->no_renormalise == 0 ? 1 : 0)
        .number("expert_parallel", one_of_none(read->expert_parallel))
        .flag("expert_map", read->expert_map)
        .flag("simulated", read->simulated)
        .flag("gate_strided", read->gate_strided)
        .number("x_inner_stride", one_of_none(read->x_inner_stride))
        .take(router());
}

}  // namespace

extern "C" {

kiln_status kiln_router_supports(kiln_service* service, int32_t device, const kiln_router* problem,
                                 kiln_error** error) {
    return guarded(
        error, [&] { return kiln::api::supports(service, device, router(), to_problem(problem), error); });
}

kiln_status kiln_router_prepare(kiln_service* service, int32_t device, const kiln_router* problem,
                                const kiln_prepare_options* options, kiln_plan** plan, kiln_error** error) {
    return guarded(error, [&] {
        return kiln::api::prepare(service, device, router(), to_problem(problem), options, plan, error);
    });
}

kiln_status kiln_router_launch(const kiln_plan* plan, void* stream, int64_t m, const kiln_router_args* args) {
    return kiln::api::launch<kiln::operators::RouterProblem>(plan, stream, m, args);
}

}  // extern "C"
