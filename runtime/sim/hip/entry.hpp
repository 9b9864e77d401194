// What every exported function does around its own work. The functions have HIP's signatures
// (hip_runtime_api.h of HIP 7.2); entry_points.hpp lists these, exports.map the names and gives each the
// symbol version that it has in AMD's library.
#pragma once

#include <new>
#include <string>

#include "runtime/sim/hip/entry_points.hpp"
#include "runtime/sim/hip/runtime.hpp"

#define KILN_EXPORT extern "C" __attribute__((visibility("default")))

namespace kiln::sim::hip {

// An entry point that is defined with other types than the list has does not compile.
#define KILN_DECLARE_ENTRY_POINT(result, name, parameters) KILN_EXPORT result name parameters;
KILN_HIP_ENTRY_POINTS(KILN_DECLARE_ENTRY_POINT)
#undef KILN_DECLARE_ENTRY_POINT

// Remembers the outcome of a call as HIP does: a failure is the thread's last error until somebody asks for
// it.
inline hipError_t note(ThreadState& thread, hipError_t error) {
    thread.last_command = error;
    if (error != hipSuccess && error != hipErrorNotReady) {
        thread.last_error = error;
        thread.message = std::move(thread.detail);
    }
    thread.detail.clear();
    return error;
}

// Runs `body(thread, runtime)`; no exception leaves an exported function.
template <class Body>
hipError_t enter(Body&& body) noexcept {
    ThreadState& thread = this_thread();
    hipError_t error = hipErrorUnknown;
    try {
        error = body(thread, Runtime::get());
    } catch (const std::bad_alloc&) {
        error = hipErrorOutOfMemory;
    } catch (...) {
        // Nothing of ours throws anything else; the caller can not be told more.
    }
    return note(thread, error);
}

// Runs `body(thread, runtime, stream)` with the stream behind a handle.
template <class Body>
hipError_t enter_stream(hipStream_t handle, Body&& body) noexcept {
    return enter([&](ThreadState& thread, Runtime& runtime) {
        const auto stream = runtime.stream(handle);
        return stream != nullptr ? body(thread, runtime, *stream) : hipErrorContextIsDestroyed;
    });
}

// For calls that a capture forbids.
template <class Body>
hipError_t enter_outside_capture(Body&& body) noexcept {
    return enter([&](ThreadState& thread, Runtime& runtime) {
        const hipError_t allowed = runtime.allowed_in_capture();
        return allowed == hipSuccess ? body(thread, runtime) : allowed;
    });
}

}  // namespace kiln::sim::hip
