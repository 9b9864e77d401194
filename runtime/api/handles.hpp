// What stands behind the opaque handles of kiln.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>

#include "kiln/kiln.h"
#include "runtime/operators/decline.hpp"
#include "runtime/service/plan.hpp"
#include "runtime/service/service.hpp"

struct kiln_error {
    kiln_status status;
    std::int32_t stage;
    std::string message;
};

struct kiln_service {
    std::atomic<std::uint32_t> references{1};
    std::unique_ptr<kiln::service::Service> service;
};

struct kiln_plan {
    std::atomic<std::uint32_t> references{1};
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
void release(Handle* handle) {
    if (handle != nullptr && handle->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        delete handle;
    }
}

// Fills in *error where the caller wants one, and gives the status that the call returns.
kiln_status report(const operators::Refusal& refusal, kiln_error** error);
kiln_status report(ErrorCode code, Stage stage, std::string message, kiln_error** error);
// The same for something that was thrown. Without memory for the object there is none.
kiln_status report_thrown(const char* what, kiln_error** error) noexcept;

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

// A copy of a versioned struct of the caller's: members that the caller does not know are zero, and members
// that this library does not know must be. False when the struct makes no sense.
bool read_versioned(const void* from, std::size_t from_bytes, void* to, std::size_t to_bytes);

}  // namespace kiln::api
