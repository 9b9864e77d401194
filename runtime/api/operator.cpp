#include "runtime/api/operator.hpp"

#include <utility>

namespace kiln::api {

kiln_status supports(kiln_service* service, std::int32_t device, const operators::Operator& op,
                     Result<operators::Problem> problem, kiln_error** error) {
    if (const kiln_status usable = check(service, "a service", error); usable != KILN_OK) {
        return usable;
    }
    if (!problem) {
        return report({0, std::move(problem.error())}, error);
    }
    const auto answer = device == KILN_NO_DEVICE ? service->service->supports(op, *problem)
                                                 : service->service->supports(device, op, *problem);
    return answer ? KILN_OK : report(answer.error(), error);
}

kiln_status prepare(kiln_service* service, std::int32_t device, const operators::Operator& op,
                    Result<operators::Problem> problem, const kiln_prepare_options* options, kiln_plan** plan,
                    kiln_error** error) {
    if (const kiln_status usable = check(service, "a service", error); usable != KILN_OK) {
        return usable;
    }
    if (plan == nullptr) {
        return report(ErrorCode::invalid_argument, Stage::configure,
                      "expected a place for the plan, found NULL", error);
    }
    const Result<service::PrepareMode> mode = to_mode(options);
    if (!mode) {
        return report({0, mode.error()}, error);
    }
    if (!problem) {
        return report({0, std::move(problem.error())}, error);
    }
    auto handle = std::make_unique<kiln_plan>();
    auto prepared = service->service->prepare(device, op, *problem, *mode);
    if (!prepared) {
        return report(prepared.error(), error);
    }
    handle->plan = *std::move(prepared);
    *plan = handle.release();
    return KILN_OK;
}

}  // namespace kiln::api
