// HIP for what the adapters have in common: driver/guards.hpp, driver/module.hpp and driver/driver_device.hpp
// say what each member is.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "runtime/device/driver/driver_device.hpp"
#include "runtime/device/hip/binding.hpp"

namespace kiln::device::hip {

struct Vendor {
    using Library = hip::Library;
    using Api = hip::Api;
    using Status = hipError_t;
    using Current = int;
    using Module = hipModule_t;
    using Function = hipFunction_t;
    using Stream = hipStream_t;
    using Event = hipEvent_t;
    using Graph = hipGraph_t;
    using GraphExec = hipGraphExec_t;
    using Memory = void*;
    using CaptureMode = hipStreamCaptureMode;

    static constexpr Status kSuccess = hipSuccess;
    static constexpr Status kEnded = hipErrorDeinitialized;
    static constexpr Status kCaptureImplicit = hipErrorStreamCaptureImplicit;
    static constexpr CaptureMode kRelaxed = hipStreamCaptureModeRelaxed;
    static constexpr CaptureMode kGlobal = hipStreamCaptureModeGlobal;
    static constexpr hipStreamCaptureStatus kNotCapturing = hipStreamCaptureStatusNone;
    static constexpr unsigned kNonBlocking = hipStreamNonBlocking;
    static constexpr unsigned kDefaultEvent = hipEventDefault;
    static constexpr std::uintptr_t kParamBufferPointer = kLaunchParamBufferPointer;
    static constexpr std::uintptr_t kParamBufferSize = kLaunchParamBufferSize;
    static constexpr std::uintptr_t kParamEnd = kLaunchParamEnd;
    static constexpr const char* kSetCurrentName = "hipSetDevice";

    // "hipMalloc of 64 bytes on device 0: hipErrorOutOfMemory (2): ...", with what a simulator knows more.
    // Takes back the last error that the call left behind.
    [[nodiscard]] static Error error(const Api& api, ErrorCode code, Stage stage, std::string_view what,
                                     int ordinal, Status status);
    [[nodiscard]] static std::string describe(const Api& api, Status status) {
        return hip::describe(api, static_cast<int>(status));
    }
    // True for all but the values that speak of the code or its launch.
    [[nodiscard]] static bool is_earlier_failure(int status);
    static void forget_error(const Api& api) { api.hipGetLastError(); }

    static Status own_current(const Library&, int ordinal, int* own) {
        *own = ordinal;
        return kSuccess;
    }
    static Status get_current(const Api& api, int* current) { return api.hipGetDevice(current); }
    static Status get_current_ordinal(const Library& library, int, int* ordinal) {
        return library.api.hipGetDevice(ordinal);
    }
    static Status set_current(const Api& api, int current) { return api.hipSetDevice(current); }
    static auto exchange_capture_mode(const Api& api) { return api.hipThreadExchangeStreamCaptureMode; }

    static Status load_module(const Api& api, Module* module, const void* image) {
        return api.hipModuleLoadData(module, image);
    }
    static Status unload_module(const Api& api, Module module) { return api.hipModuleUnload(module); }
    static Status get_function(const Api& api, Function* function, Module module, const char* name) {
        return api.hipModuleGetFunction(function, module, name);
    }
    // HIP asks for no leave to use dynamic LDS.
    static Status force_in(const Api& api, int ordinal, Function function);

    static auto launch_kernel(const Api& api) { return api.hipModuleLaunchKernel; }
    static void* to_pointer(Memory memory) { return memory; }
    static Memory to_memory(void* pointer) { return pointer; }

#define KILN_ENTRY(job, name)                  \
    static auto job(const Api& api) {          \
        return driver::Entry{api.name, #name}; \
    }
    KILN_ENTRY(allocate, hipMalloc)
    KILN_ENTRY(free, hipFree)
    KILN_ENTRY(create_stream, hipStreamCreateWithFlags)
    KILN_ENTRY(destroy_stream, hipStreamDestroy)
    KILN_ENTRY(synchronize_stream, hipStreamSynchronize)
    KILN_ENTRY(create_event, hipEventCreateWithFlags)
    KILN_ENTRY(destroy_event, hipEventDestroy)
    KILN_ENTRY(record_event, hipEventRecord)
    KILN_ENTRY(elapsed_time, hipEventElapsedTime)
    KILN_ENTRY(is_capturing, hipStreamIsCapturing)
    KILN_ENTRY(begin_capture, hipStreamBeginCapture)
    KILN_ENTRY(end_capture, hipStreamEndCapture)
    KILN_ENTRY(instantiate_graph, hipGraphInstantiateWithFlags)
    KILN_ENTRY(launch_graph, hipGraphLaunch)
    KILN_ENTRY(destroy_graph, hipGraphDestroy)
    KILN_ENTRY(destroy_graph_exec, hipGraphExecDestroy)
#undef KILN_ENTRY
};

}  // namespace kiln::device::hip
