#include "runtime/api/operator.hpp"
#include "runtime/api/problem.hpp"

namespace {

using kiln::Result;
using kiln::api::guarded;
using kiln::operators::linear;
using kiln::operators::Problem;

Result<Problem> to_problem(const kiln_linear* given) {
    const Result<kiln_linear> read = kiln::api::read_problem(given, KILN_LINEAR_INIT, "kiln_linear");
    if (!read) {
        return tl::unexpected(read.error());
    }
    return kiln::api::ProblemBuilder()
        .number("n", read->n)
        .number("k", read->k)
        .word("x_type", kiln::api::kDtypes, read->x_type)
        .word("w_type", kiln::api::kDtypes, read->w_type)
        .word("w_scale_type", kiln::api::kDtypes, read->w_scale_type)
        .word("out_type", kiln::api::kDtypes, read->out_type)
        .word("w_layout", kiln::api::kWeightLayouts, read->w_layout)
        .word("w_scale_granularity", kiln::api::kScaleGranularities, read->w_scale_granularity)
        .flag("w_scale_strided", read->w_scale_strided)
        .flag("x_quantised", read->x_quantised)
        .flag("bias", read->bias)
        .number("x_inner_stride", read->x_inner_stride == 0 ? 1 : read->x_inner_stride)
        .take(linear());
}

}  // namespace

extern "C" {

kiln_status kiln_linear_supports(kiln_service* service, int32_t device, const kiln_linear* problem,
                                 kiln_error** error) {
    return guarded(
        error, [&] { return kiln::api::supports(service, device, linear(), to_problem(problem), error); });
}

kiln_status kiln_linear_prepare(kiln_service* service, int32_t device, const kiln_linear* problem,
                                const kiln_prepare_options* options, kiln_plan** plan, kiln_error** error) {
    return guarded(error, [&] {
        return kiln::api::prepare(service, device, linear(), to_problem(problem), options, plan, error);
    });
}

kiln_status kiln_linear_launch(const kiln_plan* plan, void* stream, int64_t m, const kiln_linear_args* args) {
    return kiln::api::launch<kiln::operators::LinearProblem>(plan, stream, m, args);
}

}  // extern "C"
