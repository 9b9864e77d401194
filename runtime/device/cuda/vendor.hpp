// CUDA for what the adapters have in common: driver/guards.hpp, driver/module.hpp and
// driver/driver_device.hpp say what each member is.
//
// What is current on a thread is a context. A device of kiln's means its primary context, as the CUDA runtime
// does; where a thread has none current, the runtime counts that as device 0, and so does kiln.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "runtime/device/cuda/binding.hpp"
#include "runtime/device/driver/driver_device.hpp"

namespace kiln::device::cuda {

struct Vendor {
    using Library = cuda::Library;
    using Api = cuda::Api;
    using Status = CUresult;
    using Current = CUcontext;
    using Module = CUmodule;
    using Function = CUfunction;
    using Stream = CUstream;
    using Event = CUevent;
    using Graph = CUgraph;
    using GraphExec = CUgraphExec;
    using Memory = CUdeviceptr;
    using CaptureMode = CUstreamCaptureMode;

    static constexpr Status kSuccess = CUDA_SUCCESS;
    static constexpr Status kEnded = CUDA_ERROR_DEINITIALIZED;
    static constexpr Status kCaptureImplicit = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    static constexpr CaptureMode kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    static constexpr CaptureMode kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
    static constexpr CUstreamCaptureStatus kNotCapturing = CU_STREAM_CAPTURE_STATUS_NONE;
    static constexpr unsigned kNonBlocking = CU_STREAM_NON_BLOCKING;
    static constexpr unsigned kDefaultEvent = CU_EVENT_DEFAULT;
    static constexpr std::uintptr_t kParamBufferPointer = kLaunchParamBufferPointer;
    static constexpr std::uintptr_t kParamBufferSize = kLaunchParamBufferSize;
    static constexpr std::uintptr_t kParamEnd = kLaunchParamEnd;
    static constexpr const char* kSetCurrentName = "cuCtxSetCurrent";

    // "cuMemAlloc_v2 of 64 bytes on device 0: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory".
    [[nodiscard]] static Error error(const Api& api, ErrorCode code, Stage stage, std::string_view what,
                                     int ordinal, Status status);
    [[nodiscard]] static std::string describe(const Api& api, Status status) {
        return cuda::describe(api, status);
    }
    // True for all but the values that speak of the code or its launch.
    [[nodiscard]] static bool is_earlier_failure(int status);
    static void forget_error(const Api&) {}  // the driver keeps no last error

    static Status own_current(const Library& library, int ordinal, CUcontext* own) {
        return library.primary_context(ordinal, own);
    }
    static Status get_current(const Api& api, CUcontext* current) { return api.cuCtxGetCurrent(current); }
    // On the launch path: which context is current is a cheaper question than which device it is of.
    static Status get_current_ordinal(const Library& library, int own, int* ordinal) {
        CUcontext current = nullptr;
        const CUresult error = library.api.cuCtxGetCurrent(&current);
        if (error != CUDA_SUCCESS || current == nullptr) [[unlikely]] {
            *ordinal = 0;
            return error;
        }
        *ordinal = own;
        return current == library.known_context(own) ? CUDA_SUCCESS : library.api.cuCtxGetDevice(ordinal);
    }
    static Status set_current(const Api& api, CUcontext current) { return api.cuCtxSetCurrent(current); }
    static auto exchange_capture_mode(const Api& api) { return api.cuThreadExchangeStreamCaptureMode; }

    static Status load_module(const Api& api, Module* module, const void* image) {
        return api.cuModuleLoadData(module, image);
    }
    static Status unload_module(const Api& api, Module module) { return api.cuModuleUnload(module); }
    static Status get_function(const Api& api, Function* function, Module module, const char* name) {
        return api.cuModuleGetFunction(function, module, name);
    }
    // A launch may have 48 KiB of dynamic shared memory; beyond that a kernel has to be given leave, once.
    static Status force_in(const Api& api, int ordinal, Function function);

    static auto launch_kernel(const Api& api) { return api.cuLaunchKernel; }
    static void* to_pointer(Memory memory) { return reinterpret_cast<void*>(memory); }
    static Memory to_memory(const void* pointer) { return reinterpret_cast<Memory>(pointer); }

#define KILN_ENTRY(job, name)                  \
    static auto job(const Api& api) {          \
        return driver::Entry{api.name, #name}; \
    }
    KILN_ENTRY(allocate, cuMemAlloc_v2)
    KILN_ENTRY(free, cuMemFree_v2)
    KILN_ENTRY(create_stream, cuStreamCreate)
    KILN_ENTRY(destroy_stream, cuStreamDestroy_v2)
    KILN_ENTRY(synchronize_stream, cuStreamSynchronize)
    KILN_ENTRY(create_event, cuEventCreate)
    KILN_ENTRY(destroy_event, cuEventDestroy_v2)
    KILN_ENTRY(record_event, cuEventRecord)
    KILN_ENTRY(elapsed_time, cuEventElapsedTime)
    KILN_ENTRY(is_capturing, cuStreamIsCapturing)
    KILN_ENTRY(begin_capture, cuStreamBeginCapture_v2)
    KILN_ENTRY(end_capture, cuStreamEndCapture)
    KILN_ENTRY(instantiate_graph, cuGraphInstantiateWithFlags)
    KILN_ENTRY(launch_graph, cuGraphLaunch)
    KILN_ENTRY(destroy_graph, cuGraphDestroy)
    KILN_ENTRY(destroy_graph_exec, cuGraphExecDestroy)
#undef KILN_ENTRY
};

}  // namespace kiln::device::cuda
