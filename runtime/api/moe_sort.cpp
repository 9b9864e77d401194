#include "runtime/api/operator.hpp"
#include "runtime/api/problem.hpp"

namespace {

using kiln::Result;
using kiln::api::guarded;
using kiln::operators::moe_sort;
using kiln::operators::MoeSortProblem;
using kiln::operators::Problem;

constexpr const char* kQuants[] = {nullptr, "mxfp8"};  // 0 is the default, none

Result<Problem> to_problem(const kiln_moe_sort* given) {
    const Result<kiln_moe_sort> read = kiln::api::read_problem(given, KILN_MOE_SORT_INIT, "kiln_moe_sort");
    if (!read) {
        return tl::unexpected(read.error());
    }
    return kiln::api::ProblemBuilder()
        .number("experts", read->experts)
        .number("slots", read->slots)
        .number("block_m", read->block_m)
        .number("hidden", read->hidden)
        .word("quant", kQuants, read->quant)
        .word("x_type", kiln::api::kDtypes, read->x_type)
        .flag("expert_mask", read->expert_mask)
        .flag("num_local_tokens", read->num_local_tokens)
        .number("x_inner_stride", read->x_inner_stride == 0 ? 1 : read->x_inner_stride)
        .take(moe_sort());
}

// A size of the problem for m tokens, or minus KILN_ERROR_INVALID_ARGUMENT.
template <class Size>
std::int64_t size_of(const kiln_moe_sort* given, std::int64_t m, Size size) {
    const Result<Problem> problem = to_problem(given);
    if (!problem || m < 0 || m > kiln::operators::kMoeSortMostTokens) {
        return -KILN_ERROR_INVALID_ARGUMENT;
    }
    const auto dimensions = std::get<MoeSortProblem>(moe_sort().typed(*problem));
    return has_served_dimensions(dimensions) ? size(dimensions) : -KILN_ERROR_INVALID_ARGUMENT;
}

}  // namespace

extern "C" {

int64_t kiln_moe_sort_rows(const kiln_moe_sort* problem, int64_t m) {
    return size_of(problem, m,
                   [&](const MoeSortProblem& sort) { return kiln::operators::moe_sort_rows(sort, m); });
}

int64_t kiln_moe_sort_blocks(const kiln_moe_sort* problem, int64_t m) {
    return size_of(problem, m,
                   [&](const MoeSortProblem& sort) { return kiln::operators::moe_sort_blocks(sort, m); });
}

int64_t kiln_moe_sort_scale_bytes(const kiln_moe_sort* problem, int64_t m) {
    return size_of(problem, m, [&](const MoeSortProblem& sort) {
        return kiln::operators::moe_sort_scale_bytes(sort, m);
    });
}

kiln_status kiln_moe_sort_supports(kiln_service* service, int32_t device, const kiln_moe_sort* problem,
                                   kiln_error** error) {
    return guarded(
        error, [&] { return kiln::api::supports(service, device, moe_sort(), to_problem(problem), error); });
}

kiln_status kiln_moe_sort_prepare(kiln_service* service, int32_t device, const kiln_moe_sort* problem,
                                  const kiln_prepare_options* options, kiln_plan** plan, kiln_error** error) {
    return guarded(error, [&] {
        return kiln::api::prepare(service, device, moe_sort(), to_problem(problem), options, plan, error);
    });
}

kiln_status kiln_moe_sort_launch(const kiln_plan* plan, void* stream, int64_t m,
                                 const kiln_moe_sort_args* args) {
    return kiln::api::launch<MoeSortProblem>(plan, stream, m, args);
}

}  // extern "C"
