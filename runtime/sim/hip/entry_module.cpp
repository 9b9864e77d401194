// Modules and functions.
#include "base/file.hpp"
#include "runtime/compile/occupancy.hpp"
#include "runtime/sim/hip/entry.hpp"
#include "runtime/sim/hip/image.hpp"
#include "runtime/sim/hip/module.hpp"

using namespace kiln::sim::hip;

namespace {

// Runs `body(function)` with the function behind a handle.
template <class Body>
hipError_t enter_function(hipFunction_t handle, Body&& body) noexcept {
    return enter([&](ThreadState&, Runtime& runtime) {
        const auto function = runtime.functions.find(handle);
        return function != nullptr ? body(*function) : hipErrorInvalidHandle;
    });
}

hipError_t load(hipModule_t* module, kiln::ByteView image) {
    return enter_outside_capture([&](ThreadState& thread, Runtime& runtime) -> hipError_t {
        if (module == nullptr || image.data() == nullptr) {
            return hipErrorInvalidValue;
        }
        SimDevice& device = runtime.current();
        if (device.fault() != hipSuccess) {
            return device.fault();
        }
        std::shared_ptr<LoadedModule> loaded;
        const hipError_t error = LoadedModule::load(runtime, device, image, loaded, thread.detail);
        if (error != hipSuccess) {
            return error;
        }
        for (const auto& [name, function] : loaded->functions()) {
            runtime.functions.insert(function);
        }
        *module = runtime.modules.insert(std::move(loaded));
        return hipSuccess;
    });
}

int attribute(const LoadedFunction& function, hipFunction_attribute wanted) {
    const auto& info = function.info;
    switch (wanted) {
        case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
            return static_cast<int>(info.max_threads);
        case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
            return static_cast<int>(info.lds_bytes);
        case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
            return static_cast<int>(info.scratch_bytes);
        case HIP_FUNC_ATTRIBUTE_NUM_REGS:
            return static_cast<int>(info.vgprs);
        case HIP_FUNC_ATTRIBUTE_PTX_VERSION:
        case HIP_FUNC_ATTRIBUTE_BINARY_VERSION:
            return 95;  // major and minor of the device
        case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            return static_cast<int>(kiln::sim::kMaxLdsBytes - info.lds_bytes);
        default:
            return 0;
    }
}

}  // namespace

KILN_EXPORT hipError_t hipModuleLoadData(hipModule_t* module, const void* image) {
    return load(module, unmeasured(image));
}

// The options are the just-in-time compiler's, of which a code object needs none.
KILN_EXPORT hipError_t hipModuleLoadDataEx(hipModule_t* module, const void* image, unsigned, void*, void**) {
    return load(module, unmeasured(image));
}

KILN_EXPORT hipError_t hipModuleLoad(hipModule_t* module, const char* path) {
    if (path == nullptr) {
        return enter([](ThreadState&, Runtime&) { return hipErrorInvalidValue; });
    }
    auto bytes = kiln::read_file(path, kiln::Stage::load);
    if (!bytes) {
        return enter([&](ThreadState& thread, Runtime&) {
            thread.detail = bytes.error().message;
            return hipErrorFileNotFound;
        });
    }
    return load(module, *bytes);
}

KILN_EXPORT hipError_t hipModuleUnload(hipModule_t module) {
    return enter_outside_capture([&](ThreadState&, Runtime& runtime) {
        const auto found = runtime.modules.erase(module);
        if (found == nullptr) {
            return hipErrorNotFound;
        }
        for (const auto& [name, function] : found->functions()) {
            runtime.functions.erase(runtime.functions.handle_of(function.get()));
        }
        static_cast<void>(runtime.synchronize(found->device()));  // a fault is not the module's
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name) {
    return enter([&](ThreadState&, Runtime& runtime) {
        if (function == nullptr || name == nullptr) {
            return hipErrorInvalidValue;
        }
        const auto found = runtime.modules.find(module);
        if (found == nullptr) {
            return hipErrorInvalidHandle;
        }
        const auto kernel = found->find(name);
        if (kernel == nullptr) {
            return hipErrorNotFound;
        }
        *function = runtime.functions.handle_of(kernel.get());
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipModuleGetFunctionCount(unsigned* count, hipModule_t module) {
    return enter([&](ThreadState&, Runtime& runtime) {
        const auto found = runtime.modules.find(module);
        if (count == nullptr || found == nullptr) {
            return hipErrorInvalidValue;
        }
        *count = static_cast<unsigned>(found->num_functions());
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipFuncGetAttribute(int* value, hipFunction_attribute wanted, hipFunction_t handle) {
    return enter_function(handle, [&](const LoadedFunction& function) {
        if (value == nullptr || wanted > HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
            return hipErrorInvalidValue;
        }
        *value = attribute(function, wanted);
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipFuncGetAttributes(hipFuncAttributes* attributes, const void* handle) {
    const auto function_handle = static_cast<hipFunction_t>(const_cast<void*>(handle));
    return enter_function(function_handle, [&](const LoadedFunction& function) {
        if (attributes == nullptr) {
            return hipErrorInvalidValue;
        }
        *attributes = {};
        attributes->binaryVersion = attribute(function, HIP_FUNC_ATTRIBUTE_BINARY_VERSION);
        attributes->ptxVersion = attribute(function, HIP_FUNC_ATTRIBUTE_PTX_VERSION);
        attributes->localSizeBytes = function.info.scratch_bytes;
        attributes->sharedSizeBytes = function.info.lds_bytes;
        attributes->maxDynamicSharedSizeBytes =
            attribute(function, HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
        attributes->maxThreadsPerBlock = static_cast<int>(function.info.max_threads);
        attributes->numRegs = static_cast<int>(function.info.vgprs);
        return hipSuccess;
    });
}

// All LDS may be had without asking, so there is nothing to set; only nonsense is refused.
KILN_EXPORT hipError_t hipFuncSetAttribute(const void* handle, hipFuncAttribute wanted, int value) {
    const auto function_handle = static_cast<hipFunction_t>(const_cast<void*>(handle));
    return enter_function(function_handle, [&](const LoadedFunction& function) {
        switch (wanted) {
            case hipFuncAttributeMaxDynamicSharedMemorySize:
                return value >= 0 &&
                               value <= attribute(function, HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
                           ? hipSuccess
                           : hipErrorInvalidValue;
            case hipFuncAttributePreferredSharedMemoryCarveout:
                return value >= -1 && value <= 100 ? hipSuccess : hipErrorInvalidValue;
        }
        return hipErrorInvalidValue;
    });
}

KILN_EXPORT hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, hipFunction_t handle,
                                                                          int block_threads,
                                                                          std::size_t dynamic_bytes) {
    return enter_function(handle, [&](const LoadedFunction& function) {
        if (blocks == nullptr || block_threads <= 0) {
            return hipErrorInvalidValue;
        }
        const auto& info = function.info;
        *blocks = static_cast<std::uint32_t>(block_threads) > info.max_threads
                      ? 0
                      : static_cast<int>(kiln::compile::groups_per_unit(
                            info.vgprs, (block_threads + 63) / 64,
                            static_cast<std::int64_t>(info.lds_bytes + dynamic_bytes)));
        return hipSuccess;
    });
}
