#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/versioned_struct.hpp"
#include "runtime/api/handles.hpp"

namespace kiln::api {

using service::PrepareMode;

Result<PrepareMode> to_mode(const kiln_prepare_options* options) {
    kiln_prepare_options known = KILN_PREPARE_OPTIONS_INIT;
    if (options != nullptr &&
        (!read_versioned(options, options->struct_size, &known, sizeof(known)) || known.reserved != 0)) {
        return fail(
            ErrorCode::invalid_argument, Stage::configure,
            fmt::format("expected kiln_prepare_options of {} bytes (KILN_PREPARE_OPTIONS_INIT), found "
                        "others, or members that this version does not know",
                        sizeof(known)));
    }
    switch (known.mode) {
        case KILN_PREPARE_BLOCKING:
            return PrepareMode::blocking;
        case KILN_PREPARE_LAZY:
            return PrepareMode::lazy;
        case KILN_PREPARE_BACKGROUND:
            return PrepareMode::background;
        default:
            return fail(ErrorCode::invalid_argument, Stage::configure,
                        fmt::format("expected a value of kiln_prepare_mode, found {}", known.mode));
    }
}

}  // namespace kiln::api

namespace {

using kiln::api::check;
using kiln::api::guarded;
using kiln::api::report;

// The plan of a handle that this process may use; null for any other.
const kiln::service::Plan* usable(const kiln_plan* plan) {
    return plan != nullptr && !kiln::api::is_of_parent(plan) ? plan->plan.get() : nullptr;
}

}  // namespace

extern "C" {

kiln_plan* kiln_plan_retain(kiln_plan* plan) {
    return kiln::api::retain(plan);
}
void kiln_plan_release(kiln_plan* plan) {
    kiln::api::release(plan);
}

int32_t kiln_plan_device(const kiln_plan* plan) {
    const auto* known = usable(plan);
    return known != nullptr ? known->device().info().ordinal : -1;
}

int64_t kiln_plan_max_m(const kiln_plan* plan) {
    const auto* known = usable(plan);
    return known != nullptr ? known->max_m() : 0;
}

const char* kiln_plan_kernel_name(const kiln_plan* plan, int64_t m) {
    const auto* known = usable(plan);
    const auto* bucket = known != nullptr ? known->bucket_for(m) : nullptr;
    return bucket != nullptr ? bucket->kernel_name.c_str() : nullptr;
}

int64_t kiln_plan_workspace_bytes(const kiln_plan* plan, int64_t max_m) {
    const auto* known = usable(plan);
    return known != nullptr ? known->workspace_bytes(max_m) : 0;
}

kiln_status kiln_plan_init_workspace(const kiln_plan* plan, void* stream, void* workspace, int64_t bytes,
                                     kiln_error** error) {
    return guarded(error, [&]() -> kiln_status {
        if (const kiln_status status = check(plan, "a plan", error); status != KILN_OK) {
            return status;
        }
        auto ready = plan->plan->init_workspace(stream, workspace, bytes);
        return ready ? KILN_OK : report(ready.error(), error);
    });
}

kiln_status kiln_plan_ready(const kiln_plan* plan, int64_t m) {
    if (plan == nullptr) {
        return -KILN_ERROR_INVALID_ARGUMENT;
    }
    return kiln::api::is_of_parent(plan) ? -KILN_ERROR_ENVIRONMENT : plan->plan->ready(m);
}

kiln_status kiln_plan_wait(const kiln_plan* plan, int64_t timeout_ms, kiln_error** error) {
    return guarded(error, [&]() -> kiln_status {
        if (const kiln_status status = check(plan, "a plan", error); status != KILN_OK) {
            return status;
        }
        auto waited = plan->plan->wait(std::chrono::milliseconds(timeout_ms));
        return waited ? KILN_OK : report(waited.error(), error);
    });
}

}  // extern "C"
