// What stands behind the opaque handles of kiln.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>

#include "base/fork_guard.hpp"
#include "kiln/kiln.h"
#include "runtime/operators/decline.hpp"
#include "runtime/service/plan.hpp"
#include "runtime/service/service.hpp"

struct kiln_error {
    kiln_status status;
    std::int32_t stage;
    std::string message;
};

// Handles know the generation of forks that they were made in; a child of that process can not use them.
struct kiln_service {
    std::atomic<std::uint32_t> references{1};
    const std::uint32_t generation = kiln::fork_generation();
    std::unique_ptr<kiln::service::Service> service;
};

struct kiln_plan {
    std::atomic<std::uint32_t> references{1};
    const std::uint32_t generation = kiln::fork_generation();
    std::shared_ptr<const kiln::service::Plan> plan;
};

namespace kiln::api {

template <class Handle>
Handle* retain(Handle* handle) {
    if (handle != nullptr) {
        handle->references.fetch_add(1, std::memory_order_relaxed);
    }
    return handle;
}

template <class Handle>
bool is_of_parent(const Handle* handle) {
    return handle->generation != fork_generation();
}

// What a parent's handle holds (a driver, threads, processes) can not be taken down in its child, so it is
// left alone there.
template <class Handle>
void release(Handle* handle) {
    if (handle != nullptr && !is_of_parent(handle) &&
        handle->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        delete handle;
    }
}

// Fills in *error where the caller wants one, and gives the status that the call returns.
kiln_status report(const operators::Refusal& refusal, kiln_error** error);
kiln_status report(ErrorCode code, Stage stage, std::string message, kiln_error** error);
// The same for something that was thrown. Without memory for the object there is none.
kiln_status report_thrown(const char* what, kiln_error** error) noexcept;

// The answer for a handle that can not be used, KILN_OK for one that can. `what` is "a service", "a plan".
template <class Handle>
kiln_status check(const Handle* handle, const char* what, kiln_error** error) {
    if (handle == nullptr) {
        return report(ErrorCode::invalid_argument, Stage::configure,
                      std::string("expected ") + what + ", found NULL", error);
    }
    if (is_of_parent(handle)) {
        return report(ErrorCode::environment, Stage::configure,
                      std::string("expected ") + what +
                          " of this process, found one that its parent made before the fork; open a service "
                          "of this process's own",
                      error);
    }
    return KILN_OK;
}

// Runs `body` so that nothing is thrown into C: what an exception says becomes an internal error.
template <class Body>
kiln_status guarded(kiln_error** error, const Body& body) noexcept {
    try {
        return body();
    } catch (const std::exception& exception) {
        return report_thrown(exception.what(), error);
    } catch (...) {
        return report_thrown("something that is no std::exception was thrown", error);
    }
}

// bad when the struct makes no sense or the mode is none; NULL is blocking.
[[nodiscard]] Result<service::PrepareMode> to_mode(const kiln_prepare_options* options);

}  // namespace kiln::api
