// The entry points of a libamdhip64 that the adapter calls, resolved from one copy of it.
//
// Few are required, so that a small double of the driver can stand in for it: the first group. The others are
// null where the library lacks them, and the adapter says so by name when one is needed.
#pragma once

#include <string>

#include "base/error.hpp"
#include "runtime/device/hip/device_prop.hpp"
#include "runtime/device/hip/sim_abi.h"
#include "runtime/device/hip/types.hpp"

namespace kiln::device::hip {

using namespace kiln::hip;

struct Api {
    // Required.
    hipError_t (*hipGetDeviceCount)(int*) = nullptr;
    hipError_t (*hipGetDevice)(int*) = nullptr;
    hipError_t (*hipSetDevice)(int) = nullptr;
    hipError_t (*hipGetDevicePropertiesR0600)(hipDeviceProp_t*, int) = nullptr;
    hipError_t (*hipModuleLoadData)(hipModule_t*, const void*) = nullptr;
    hipError_t (*hipModuleUnload)(hipModule_t) = nullptr;
    hipError_t (*hipModuleGetFunction)(hipFunction_t*, hipModule_t, const char*) = nullptr;
    hipError_t (*hipModuleLaunchKernel)(hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned,
                                        unsigned, unsigned, hipStream_t, void**, void**) = nullptr;
    hipError_t (*hipGetLastError)() = nullptr;

    // Optional.
    hipError_t (*hipDriverGetVersion)(int*) = nullptr;
    const char* (*hipGetErrorName)(hipError_t) = nullptr;
    const char* (*hipGetErrorString)(hipError_t) = nullptr;
    hipError_t (*hipFuncGetAttribute)(int*, hipFunction_attribute, hipFunction_t) = nullptr;
    hipError_t (*hipThreadExchangeStreamCaptureMode)(hipStreamCaptureMode*) = nullptr;
    hipError_t (*hipMalloc)(void**, std::size_t) = nullptr;
    hipError_t (*hipFree)(void*) = nullptr;
    hipError_t (*hipMemcpyAsync)(void*, const void*, std::size_t, hipMemcpyKind, hipStream_t) = nullptr;
    hipError_t (*hipMemsetAsync)(void*, int, std::size_t, hipStream_t) = nullptr;
    hipError_t (*hipStreamCreateWithFlags)(hipStream_t*, unsigned) = nullptr;
    hipError_t (*hipStreamDestroy)(hipStream_t) = nullptr;
    hipError_t (*hipStreamSynchronize)(hipStream_t) = nullptr;
    hipError_t (*hipStreamIsCapturing)(hipStream_t, hipStreamCaptureStatus*) = nullptr;
    hipError_t (*hipStreamBeginCapture)(hipStream_t, hipStreamCaptureMode) = nullptr;
    hipError_t (*hipStreamEndCapture)(hipStream_t, hipGraph_t*) = nullptr;
    hipError_t (*hipEventCreateWithFlags)(hipEvent_t*, unsigned) = nullptr;
    hipError_t (*hipEventDestroy)(hipEvent_t) = nullptr;
    hipError_t (*hipEventRecord)(hipEvent_t, hipStream_t) = nullptr;
    hipError_t (*hipEventElapsedTime)(float*, hipEvent_t, hipEvent_t) = nullptr;
    hipError_t (*hipGraphInstantiateWithFlags)(hipGraphExec_t*, hipGraph_t, unsigned long long) = nullptr;
    hipError_t (*hipGraphLaunch)(hipGraphExec_t, hipStream_t) = nullptr;
    hipError_t (*hipGraphDestroy)(hipGraph_t) = nullptr;
    hipError_t (*hipGraphExecDestroy)(hipGraphExec_t) = nullptr;

    // Of the simulator only.
    int (*kiln_sim_next_launch_counts)(int, kiln_sim_counts*) = nullptr;
    int (*kiln_sim_take_counts)(int, kiln_sim_counts*) = nullptr;
    const char* (*kiln_sim_last_fault)(int) = nullptr;
    const char* (*kiln_sim_last_message)() = nullptr;
    int (*kiln_sim_set_rules)(int, const kiln_sim_rules*) = nullptr;
    int (*kiln_sim_push_places)(const kiln_sim_places*) = nullptr;
    int (*kiln_sim_pop_places)() = nullptr;

    [[nodiscard]] bool simulated() const { return kiln_sim_take_counts != nullptr; }
};

// From a handle of dlopen. environment names the library and the first required entry point that it lacks.
[[nodiscard]] Result<Api> resolve(void* handle, const std::string& library);

// "hipErrorInvalidValue (1): invalid argument", in the library's words where it has any.
[[nodiscard]] std::string describe(const Api& api, int error);

}  // namespace kiln::device::hip
