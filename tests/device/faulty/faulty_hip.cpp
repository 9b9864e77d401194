// faulty.h as a libamdhip64.
#include <string>
#include <utility>

#include "runtime/device/hip/device_prop.hpp"
#include "runtime/device/hip/sim_abi.h"
#include "runtime/device/hip/types.hpp"
#include "tests/device/faulty/faults.hpp"

using namespace kiln::hip;
using namespace kiln::test::faults;

namespace {

thread_local hipError_t last_injected = hipSuccess;  // not taken yet
thread_local std::string message;                    // of the last call, if it was failed on purpose

hipError_t answer(const char* entry, int error) {
    last_injected = static_cast<hipError_t>(error);
    message = std::string("failed on purpose in ") + entry;
    return last_injected;
}

hipError_t answer(const char* entry, const Outcome& outcome) {
    if (outcome.on_purpose) {
        return answer(entry, outcome.error);
    }
    message.clear();
    return static_cast<hipError_t>(outcome.error);
}

}  // namespace

#define KILN_FORWARD_AS(name, effect, object, change, parameters, ...)                                    \
    KILN_FAULTY hipError_t name parameters {                                                              \
        static auto* const entry = real<hipError_t parameters>(#name);                                    \
        return answer(#name, forward(#name, effect, object, change, [&] { return entry(__VA_ARGS__); })); \
    }
#define KILN_FORWARD(name, parameters, ...) \
    KILN_FORWARD_AS(name, Effect::none, nullptr, 0, parameters, __VA_ARGS__)
#define KILN_MAKES(name, object, parameters, ...) \
    KILN_FORWARD_AS(name, Effect::none, &faulty_live::object, 1, parameters, __VA_ARGS__)
#define KILN_DESTROYS(name, object, parameters, ...) \
    KILN_FORWARD_AS(name, Effect::destroys, &faulty_live::object, -1, parameters, __VA_ARGS__)

KILN_FORWARD(hipGetDeviceCount, (int* count), count)
KILN_FORWARD(hipGetDevice, (int* device), device)
KILN_FORWARD(hipSetDevice, (int device), device)
KILN_FORWARD(hipGetDevicePropertiesR0600, (hipDeviceProp_t * properties, int device), properties, device)
KILN_MAKES(hipModuleLoadData, modules, (hipModule_t * module, const void* image), module, image)
KILN_DESTROYS(hipModuleUnload, modules, (hipModule_t module), module)
KILN_FORWARD(hipModuleGetFunction, (hipFunction_t * function, hipModule_t module, const char* name), function,
             module, name)
KILN_FORWARD(hipModuleLaunchKernel,
             (hipFunction_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
              unsigned bz, unsigned lds, hipStream_t stream, void** params, void** extra),
             function, gx, gy, gz, bx, by, bz, lds, stream, params, extra)
KILN_FORWARD(hipFuncGetAttribute, (int* value, hipFunction_attribute wanted, hipFunction_t function), value,
             wanted, function)
KILN_FORWARD(hipThreadExchangeStreamCaptureMode, (hipStreamCaptureMode * mode), mode)
KILN_MAKES(hipMalloc, allocations, (void** pointer, std::size_t bytes), pointer, bytes)
KILN_DESTROYS(hipFree, allocations, (void* pointer), pointer)
KILN_FORWARD(hipMemcpyAsync,
             (void* to, const void* from, std::size_t bytes, hipMemcpyKind kind, hipStream_t stream), to,
             from, bytes, kind, stream)
KILN_FORWARD(hipMemsetAsync, (void* to, int value, std::size_t bytes, hipStream_t stream), to, value, bytes,
             stream)
KILN_MAKES(hipStreamCreateWithFlags, streams, (hipStream_t * stream, unsigned flags), stream, flags)
KILN_DESTROYS(hipStreamDestroy, streams, (hipStream_t stream), stream)
KILN_FORWARD(hipStreamSynchronize, (hipStream_t stream), stream)
KILN_FORWARD(hipStreamIsCapturing, (hipStream_t stream, hipStreamCaptureStatus* status), stream, status)
KILN_FORWARD(hipStreamBeginCapture, (hipStream_t stream, hipStreamCaptureMode mode), stream, mode)
KILN_MAKES(hipEventCreateWithFlags, events, (hipEvent_t * event, unsigned flags), event, flags)
KILN_DESTROYS(hipEventDestroy, events, (hipEvent_t event), event)
KILN_FORWARD(hipEventRecord, (hipEvent_t event, hipStream_t stream), event, stream)
KILN_FORWARD(hipEventElapsedTime, (float* milliseconds, hipEvent_t start, hipEvent_t stop), milliseconds,
             start, stop)
KILN_MAKES(hipGraphInstantiateWithFlags, executables,
           (hipGraphExec_t * executable, hipGraph_t graph, unsigned long long flags), executable, graph,
           flags)
KILN_FORWARD(hipGraphLaunch, (hipGraphExec_t executable, hipStream_t stream), executable, stream)
KILN_DESTROYS(hipGraphDestroy, graphs, (hipGraph_t graph), graph)
KILN_DESTROYS(hipGraphExecDestroy, executables, (hipGraphExec_t executable), executable)

// Ends the capture, but gives the graph to nobody when it is to fail.
KILN_FAULTY hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph) {
    static auto* const entry = real<hipError_t(hipStream_t, hipGraph_t*)>("hipStreamEndCapture");
    static auto* const drop = real<hipError_t(hipGraph_t)>("hipGraphDestroy");
    const int fault = fault_of("hipStreamEndCapture");
    const hipError_t error = entry(stream, graph);
    if (fault != 0) {
        if (error == hipSuccess) {
            drop(*graph);
        }
        *graph = nullptr;
        return answer("hipStreamEndCapture", fault);
    }
    count(&faulty_live::graphs, error == hipSuccess ? 1 : 0);
    return error;
}

KILN_FAULTY hipError_t hipGetLastError() {
    static auto* const entry = real<hipError_t()>("hipGetLastError");
    fault_of("hipGetLastError");
    const hipError_t theirs = entry();
    const hipError_t ours = std::exchange(last_injected, hipSuccess);
    return ours != hipSuccess ? ours : theirs;
}

KILN_FAULTY const char* hipGetErrorName(hipError_t error) {
    static auto* const entry = real<const char*(hipError_t)>("hipGetErrorName");
    return fault_of("hipGetErrorName") == 0 ? entry(error) : nullptr;
}

KILN_FAULTY const char* hipGetErrorString(hipError_t error) {
    static auto* const entry = real<const char*(hipError_t)>("hipGetErrorString");
    return fault_of("hipGetErrorString") == 0 ? entry(error) : nullptr;
}

KILN_FAULTY int kiln_sim_take_counts(int device, kiln_sim_counts* counts) {
    static auto* const entry = real<int(int, kiln_sim_counts*)>("kiln_sim_take_counts");
    const int fault = fault_of("kiln_sim_take_counts");
    return fault == 0 ? entry(device, counts) : static_cast<int>(answer("kiln_sim_take_counts", fault));
}

KILN_FAULTY int kiln_sim_push_places(const kiln_sim_places* places) {
    static auto* const entry = real<int(const kiln_sim_places*)>("kiln_sim_push_places");
    return entry(places);
}

KILN_FAULTY int kiln_sim_pop_places() {
    static auto* const entry = real<int()>("kiln_sim_pop_places");
    return entry();
}

KILN_FAULTY const char* kiln_sim_last_fault(int device) {
    static auto* const entry = real<const char*(int)>("kiln_sim_last_fault");
    return entry(device);
}

KILN_FAULTY const char* kiln_sim_last_message() {
    static auto* const entry = real<const char*()>("kiln_sim_last_message");
    return message.empty() ? entry() : message.c_str();
}

KILN_FAULTY int faulty_last_error(void) {
    static auto* const entry = real<int()>("hipPeekAtLastError");
    return last_injected != hipSuccess ? static_cast<int>(last_injected) : entry();
}

KILN_FAULTY int faulty_current_device(void) {
    static auto* const entry = real<int(int*)>("hipGetDevice");
    int device = -1;
    entry(&device);
    return device;
}

KILN_FAULTY void faulty_set_current_device(int device) {
    static auto* const entry = real<int(int)>("hipSetDevice");
    entry(device);
}
