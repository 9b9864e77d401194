// faulty.h as a libcuda over the look-alike's devices: contexts are its own, memory, streams, captures and
// the kernels of gfx950 code objects are the look-alike's. As strict as CUDA where the adapter has to take
// care:
//  1. nothing works before cuInit, and next to nothing without a current context;
//  2. a function that was never loaded is not launched, and none without leave with more than 48 KiB of
//     dynamic shared memory.
// It says that it is of compute capability 9.0. A cubin (ELF machine 190) loads too: each of its kernels does
// nothing.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/cuda/types.hpp"
#include "runtime/device/hip/device_prop.hpp"
#include "runtime/device/hip/types.hpp"
#include "tests/device/faulty/faults.hpp"

using namespace kiln::cuda;
using namespace kiln::hip;
using namespace kiln::test::faults;

// What the handles of types.hpp point at.
namespace kiln::cuda {
struct CUctx_st {};
struct CUfunc_st {
    hipFunction_t real = nullptr;  // null: of a cubin
    bool loaded = false;
    unsigned dynamic_bytes = 48 * 1024;
};
struct CUmod_st {
    hipModule_t real = nullptr;  // null: a cubin
    std::vector<std::unique_ptr<CUfunc_st>> functions;
};
}  // namespace kiln::cuda

namespace {

constexpr int kSharedBytes = 227 * 1024;
constexpr int kMaxDevices = 16;

std::atomic<bool> initialised{false};
std::array<CUctx_st, kMaxDevices> contexts;
thread_local CUcontext current = nullptr;

// Those that nobody unloads are the driver's.
class Modules {
  public:
    CUmodule add(std::unique_ptr<CUmod_st> module) {
        const std::scoped_lock lock(mutex_);
        return modules_.emplace_back(std::move(module)).get();
    }
    void remove(CUmodule module) {
        const std::scoped_lock lock(mutex_);
        std::erase_if(modules_, [module](const auto& loaded) { return loaded.get() == module; });
    }

  private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<CUmod_st>> modules_;
};
Modules& modules = *new Modules;

int current_ordinal() {
    return current != nullptr ? static_cast<int>(current - contexts.data()) : -1;
}

template <class... Arguments>
hipError_t hip(const char* name, Arguments... arguments) {
    return real<hipError_t(Arguments...)>(name)(arguments...);
}

CUresult translate(hipError_t error) {
    if (error != hipSuccess) {
        hip("hipGetLastError");
    }
    return error == hipErrorInvalidConfiguration ? CUDA_ERROR_INVALID_VALUE : static_cast<CUresult>(error);
}

enum class Needs { nothing, driver, context };

// One call of `entry`, if what it needs is there.
template <class Call>
CUresult run(const char* entry, Needs needs, Effect effect, int faulty_live::*object, int change,
             const Call& call) {
    const auto outcome = forward(entry, effect, object, change, [&] {
        if (needs != Needs::nothing && !initialised) {
            return CUDA_ERROR_NOT_INITIALIZED;
        }
        if (needs != Needs::context) {
            return static_cast<CUresult>(call());
        }
        if (current == nullptr) {
            return CUDA_ERROR_INVALID_CONTEXT;
        }
        if (const auto error = translate(hip("hipSetDevice", current_ordinal())); error != CUDA_SUCCESS) {
            return error;
        }
        return static_cast<CUresult>(call());
    });
    return static_cast<CUresult>(outcome.error);
}
template <class Call>
CUresult run(const char* entry, Needs needs, const Call& call) {
    return run(entry, needs, Effect::none, nullptr, 0, call);
}

CUresult properties_of(int ordinal, hipDeviceProp_t* properties) {
    return translate(hip("hipGetDevicePropertiesR0600", properties, ordinal));
}

bool is_cubin(const void* image) {
    constexpr std::size_t kMachineOffset = 18;
    constexpr std::uint16_t kCuda = 190;
    std::uint16_t machine = 0;
    std::memcpy(&machine, static_cast<const std::byte*>(image) + kMachineOffset, sizeof machine);
    return machine == kCuda;
}

template <class To, class From>
To handle(From from) {
    return reinterpret_cast<To>(from);
}

}  // namespace

KILN_FAULTY CUresult cuInit(unsigned) {
    return run("cuInit", Needs::nothing, [] {
        initialised = true;
        return CUDA_SUCCESS;
    });
}

KILN_FAULTY CUresult cuDeviceGetCount(int* number) {
    return run("cuDeviceGetCount", Needs::driver,
               [&] { return translate(hip("hipGetDeviceCount", number)); });
}

KILN_FAULTY CUresult cuDeviceGet(CUdevice* device, int ordinal) {
    return run("cuDeviceGet", Needs::driver, [&] {
        *device = ordinal;
        return CUDA_SUCCESS;
    });
}

KILN_FAULTY CUresult cuDeviceGetName(char* name, int size, CUdevice) {
    return run("cuDeviceGetName", Needs::driver, [&] {
        std::snprintf(name, static_cast<std::size_t>(size), "double of an H200");
        return CUDA_SUCCESS;
    });
}

KILN_FAULTY CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
    return run("cuDeviceTotalMem_v2", Needs::driver, [&] {
        hipDeviceProp_t properties{};
        const CUresult error = properties_of(device, &properties);
        *bytes = properties.totalGlobalMem;
        return error;
    });
}

KILN_FAULTY CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute wanted, CUdevice) {
    return run("cuDeviceGetAttribute", Needs::driver, [&] {
        switch (wanted) {
            case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
                *value = 132;
                return CUDA_SUCCESS;
            case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
                *value = 50 << 20;
                return CUDA_SUCCESS;
            case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
                *value = 9;
                return CUDA_SUCCESS;
            case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
                *value = 0;
                return CUDA_SUCCESS;
            case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
                *value = kSharedBytes;
                return CUDA_SUCCESS;
        }
        return CUDA_ERROR_INVALID_VALUE;
    });
}

KILN_FAULTY CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
    return run("cuDevicePrimaryCtxRetain", Needs::driver, [&] {
        *context = &contexts[static_cast<std::size_t>(device)];
        return CUDA_SUCCESS;
    });
}

KILN_FAULTY CUresult cuCtxGetCurrent(CUcontext* context) {
    return run("cuCtxGetCurrent", Needs::driver, [&] {
        *context = current;
        return CUDA_SUCCESS;
    });
}

KILN_FAULTY CUresult cuCtxSetCurrent(CUcontext context) {
    return run("cuCtxSetCurrent", Needs::driver, [&] {
        current = context;
        return CUDA_SUCCESS;
    });
}

KILN_FAULTY CUresult cuCtxGetDevice(CUdevice* device) {
    return run("cuCtxGetDevice", Needs::context, [&] {
        *device = current_ordinal();
        return CUDA_SUCCESS;
    });
}

KILN_FAULTY CUresult cuModuleLoadData(CUmodule* module, const void* image) {
    return run("cuModuleLoadData", Needs::context, Effect::none, &faulty_live::modules, 1, [&] {
        auto made = std::make_unique<CUmod_st>();
        const CUresult error =
            is_cubin(image) ? CUDA_SUCCESS : translate(hip("hipModuleLoadData", &made->real, image));
        *module = error == CUDA_SUCCESS ? modules.add(std::move(made)) : nullptr;
        return error;
    });
}

KILN_FAULTY CUresult cuModuleUnload(CUmodule module) {
    return run("cuModuleUnload", Needs::context, Effect::destroys, &faulty_live::modules, -1, [&] {
        const CUresult error =
            module->real != nullptr ? translate(hip("hipModuleUnload", module->real)) : CUDA_SUCCESS;
        modules.remove(module);
        return error;
    });
}

KILN_FAULTY CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
    return run("cuModuleGetFunction", Needs::context, [&] {
        auto made = std::make_unique<CUfunc_st>();
        if (module->real != nullptr) {
            const auto error = translate(hip("hipModuleGetFunction", &made->real, module->real, name));
            if (error != CUDA_SUCCESS) {
                return error;
            }
        }
        *function = module->functions.emplace_back(std::move(made)).get();
        return CUDA_SUCCESS;
    });
}

KILN_FAULTY CUresult cuFuncLoad(CUfunction function) {
    return run("cuFuncLoad", Needs::context, [&] {
        function->loaded = true;
        return CUDA_SUCCESS;
    });
}

KILN_FAULTY CUresult cuFuncGetAttribute(int* value, CUfunction_attribute wanted, CUfunction function) {
    return run("cuFuncGetAttribute", Needs::context, [&] {
        *value = 0;
        return function->real == nullptr
                   ? CUDA_SUCCESS
                   : translate(hip("hipFuncGetAttribute", value, static_cast<hipFunction_attribute>(wanted),
                                   function->real));
    });
}

KILN_FAULTY CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value) {
    return run("cuFuncSetAttribute", Needs::context, [&] {
        if (which != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 || value > kSharedBytes) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        function->dynamic_bytes = static_cast<unsigned>(value);
        return CUDA_SUCCESS;
    });
}

KILN_FAULTY CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                    unsigned block_x, unsigned block_y, unsigned block_z,
                                    unsigned shared_bytes, CUstream stream, void** params, void** extra) {
    return run("cuLaunchKernel", Needs::context, [&] {
        const auto key = [&](int i) { return reinterpret_cast<std::uintptr_t>(extra[i]); };
        if (!function->loaded || shared_bytes > function->dynamic_bytes || params != nullptr ||
            key(0) != kiln::cuda::kLaunchParamBufferPointer || key(2) != kiln::cuda::kLaunchParamBufferSize ||
            key(4) != kiln::cuda::kLaunchParamEnd) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        if (function->real == nullptr) {
            return CUDA_SUCCESS;
        }
        void* translated[] = {reinterpret_cast<void*>(kiln::hip::kLaunchParamBufferPointer), extra[1],
                              reinterpret_cast<void*>(kiln::hip::kLaunchParamBufferSize), extra[3],
                              reinterpret_cast<void*>(kiln::hip::kLaunchParamEnd)};
        return translate(hip("hipModuleLaunchKernel", function->real, grid_x, grid_y, grid_z, block_x,
                             block_y, block_z, shared_bytes, handle<hipStream_t>(stream), params,
                             static_cast<void**>(translated)));
    });
}

KILN_FAULTY CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
    return run("cuThreadExchangeStreamCaptureMode", Needs::driver,
               [&] { return translate(hip("hipThreadExchangeStreamCaptureMode", mode)); });
}

KILN_FAULTY CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t bytes) {
    return run("cuMemAlloc_v2", Needs::context, Effect::none, &faulty_live::allocations, 1, [&] {
        return bytes == 0 ? CUDA_ERROR_INVALID_VALUE
                          : translate(hip("hipMalloc", reinterpret_cast<void**>(pointer), bytes));
    });
}

KILN_FAULTY CUresult cuMemFree_v2(CUdeviceptr pointer) {
    return run("cuMemFree_v2", Needs::context, Effect::destroys, &faulty_live::allocations, -1,
               [&] { return translate(hip("hipFree", reinterpret_cast<void*>(pointer))); });
}

KILN_FAULTY CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes,
                                          CUstream stream) {
    return run("cuMemcpyHtoDAsync_v2", Needs::context, [&] {
        return translate(hip("hipMemcpyAsync", reinterpret_cast<void*>(to), from, bytes,
                             hipMemcpyHostToDevice, handle<hipStream_t>(stream)));
    });
}

KILN_FAULTY CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
    return run("cuMemcpyDtoHAsync_v2", Needs::context, [&] {
        return translate(hip("hipMemcpyAsync", to, reinterpret_cast<const void*>(from), bytes,
                             hipMemcpyDeviceToHost, handle<hipStream_t>(stream)));
    });
}

KILN_FAULTY CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t bytes,
                                     CUstream stream) {
    return run("cuMemsetD8Async", Needs::context, [&] {
        return translate(hip("hipMemsetAsync", reinterpret_cast<void*>(to), static_cast<int>(value), bytes,
                             handle<hipStream_t>(stream)));
    });
}

#define KILN_FORWARD_AS(name, effect, object, change, parameters, hip_name, ...) \
    KILN_FAULTY CUresult name parameters {                                       \
        return run(#name, Needs::context, effect, object, change,                \
                   [&] { return translate(hip(hip_name, __VA_ARGS__)); });       \
    }
#define KILN_FORWARD(name, parameters, hip_name, ...) \
    KILN_FORWARD_AS(name, Effect::none, nullptr, 0, parameters, hip_name, __VA_ARGS__)
#define KILN_MAKES(name, object, parameters, hip_name, ...) \
    KILN_FORWARD_AS(name, Effect::none, &faulty_live::object, 1, parameters, hip_name, __VA_ARGS__)
#define KILN_DESTROYS(name, object, parameters, hip_name, ...) \
    KILN_FORWARD_AS(name, Effect::destroys, &faulty_live::object, -1, parameters, hip_name, __VA_ARGS__)

KILN_MAKES(cuStreamCreate, streams, (CUstream * stream, unsigned flags), "hipStreamCreateWithFlags",
           handle<hipStream_t*>(stream), flags)
KILN_DESTROYS(cuStreamDestroy_v2, streams, (CUstream stream), "hipStreamDestroy", handle<hipStream_t>(stream))
KILN_FORWARD(cuStreamSynchronize, (CUstream stream), "hipStreamSynchronize", handle<hipStream_t>(stream))
KILN_FORWARD(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus* status), "hipStreamIsCapturing",
             handle<hipStream_t>(stream), status)
KILN_FORWARD(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode), "hipStreamBeginCapture",
             handle<hipStream_t>(stream), static_cast<hipStreamCaptureMode>(mode))
KILN_MAKES(cuEventCreate, events, (CUevent * event, unsigned flags), "hipEventCreateWithFlags",
           handle<hipEvent_t*>(event), flags)
KILN_DESTROYS(cuEventDestroy_v2, events, (CUevent event), "hipEventDestroy", handle<hipEvent_t>(event))
KILN_FORWARD(cuEventRecord, (CUevent event, CUstream stream), "hipEventRecord", handle<hipEvent_t>(event),
             handle<hipStream_t>(stream))
KILN_FORWARD(cuEventElapsedTime, (float* milliseconds, CUevent start, CUevent stop), "hipEventElapsedTime",
             milliseconds, handle<hipEvent_t>(start), handle<hipEvent_t>(stop))
KILN_MAKES(cuGraphInstantiateWithFlags, executables,
           (CUgraphExec * executable, CUgraph graph, unsigned long long flags),
           "hipGraphInstantiateWithFlags", handle<hipGraphExec_t*>(executable), handle<hipGraph_t>(graph),
           flags)
KILN_FORWARD(cuGraphLaunch, (CUgraphExec executable, CUstream stream), "hipGraphLaunch",
             handle<hipGraphExec_t>(executable), handle<hipStream_t>(stream))
KILN_DESTROYS(cuGraphDestroy, graphs, (CUgraph graph), "hipGraphDestroy", handle<hipGraph_t>(graph))
KILN_DESTROYS(cuGraphExecDestroy, executables, (CUgraphExec executable), "hipGraphExecDestroy",
              handle<hipGraphExec_t>(executable))

// Ends the capture, but gives the graph to nobody when it is to fail.
KILN_FAULTY CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
    hipGraph_t made = nullptr;
    const CUresult error = run("cuStreamEndCapture", Needs::context, Effect::destroys, nullptr, 0, [&] {
        return translate(hip("hipStreamEndCapture", handle<hipStream_t>(stream), &made));
    });
    if (error != CUDA_SUCCESS && made != nullptr) {
        hip("hipGraphDestroy", made);
        made = nullptr;
    }
    count(&faulty_live::graphs, made != nullptr ? 1 : 0);
    *graph = handle<CUgraph>(made);
    return error;
}

// A name of its own for those that a test reads.
KILN_FAULTY CUresult cuGetErrorName(CUresult error, const char** name) {
    if (fault_of("cuGetErrorName") != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch (error) {
        case CUDA_ERROR_INVALID_VALUE:
            *name = "CUDA_ERROR_INVALID_VALUE";
            break;
        case CUDA_ERROR_OUT_OF_MEMORY:
            *name = "CUDA_ERROR_OUT_OF_MEMORY";
            break;
        case CUDA_ERROR_NO_BINARY_FOR_GPU:
            *name = "CUDA_ERROR_NO_BINARY_FOR_GPU";
            break;
        case CUDA_ERROR_NOT_FOUND:
            *name = "CUDA_ERROR_NOT_FOUND";
            break;
        default:
            *name = "CUDA_ERROR";
    }
    return CUDA_SUCCESS;
}

KILN_FAULTY CUresult cuGetErrorString(CUresult, const char** words) {
    *words = "as CUDA would say it";
    return fault_of("cuGetErrorString") == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

KILN_FAULTY int faulty_last_error(void) {
    return 0;
}

KILN_FAULTY int faulty_current_device(void) {
    return current_ordinal();
}

KILN_FAULTY int faulty_reset_device(void) {
    return static_cast<int>(translate(hip("hipDeviceReset")));
}

KILN_FAULTY void faulty_set_current_device(int device) {
    current = device >= 0 ? &contexts[static_cast<std::size_t>(device)] : nullptr;
}
