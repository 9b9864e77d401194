#include "runtime/device/cuda/api.hpp"

#include <fmt/format.h>

#include "runtime/device/driver/resolver.hpp"

namespace kiln::device::cuda {

Result<Api> resolve(void* handle, const std::string& library) {
    Api api;
    driver::Resolver resolver(handle);
#define KILN_REQUIRE(name) resolver.require(api.name, #name)
#define KILN_FIND(name) resolver.find(api.name, #name)
    KILN_REQUIRE(cuInit);
    KILN_REQUIRE(cuDeviceGetCount);
    KILN_REQUIRE(cuDeviceGet);
    KILN_REQUIRE(cuDeviceGetName);
    KILN_REQUIRE(cuDeviceGetAttribute);
    KILN_REQUIRE(cuDeviceTotalMem_v2);
    KILN_REQUIRE(cuDevicePrimaryCtxRetain);
    KILN_REQUIRE(cuCtxGetCurrent);
    KILN_REQUIRE(cuCtxSetCurrent);
    KILN_REQUIRE(cuCtxGetDevice);
    KILN_REQUIRE(cuModuleLoadData);
    KILN_REQUIRE(cuModuleUnload);
    KILN_REQUIRE(cuModuleGetFunction);
    KILN_REQUIRE(cuFuncGetAttribute);
    KILN_REQUIRE(cuFuncSetAttribute);
    KILN_REQUIRE(cuLaunchKernel);

    KILN_FIND(cuDriverGetVersion);
    KILN_FIND(cuGetErrorName);
    KILN_FIND(cuGetErrorString);
    KILN_FIND(cuFuncLoad);
    KILN_FIND(cuThreadExchangeStreamCaptureMode);
    KILN_FIND(cuMemAlloc_v2);
    KILN_FIND(cuMemFree_v2);
    KILN_FIND(cuMemcpyHtoDAsync_v2);
    KILN_FIND(cuMemcpyDtoHAsync_v2);
    KILN_FIND(cuMemsetD8Async);
    KILN_FIND(cuStreamCreate);
    KILN_FIND(cuStreamDestroy_v2);
    KILN_FIND(cuStreamSynchronize);
    KILN_FIND(cuStreamIsCapturing);
    KILN_FIND(cuStreamBeginCapture_v2);
    KILN_FIND(cuStreamEndCapture);
    KILN_FIND(cuEventCreate);
    KILN_FIND(cuEventDestroy_v2);
    KILN_FIND(cuEventRecord);
    KILN_FIND(cuEventElapsedTime);
    KILN_FIND(cuGraphInstantiateWithFlags);
    KILN_FIND(cuGraphLaunch);
    KILN_FIND(cuGraphDestroy);
    KILN_FIND(cuGraphExecDestroy);
#undef KILN_REQUIRE
#undef KILN_FIND
    if (!resolver.missing().empty()) {
        return fail(ErrorCode::environment, Stage::device,
                    fmt::format("{} is no CUDA driver of version 11 or newer: it lacks {}", library,
                                resolver.missing()));
    }
    return api;
}

std::string describe(const Api& api, CUresult error) {
    const auto text = [error](CUresult (*entry)(CUresult, const char**)) {
        const char* words = nullptr;
        return entry != nullptr && entry(error, &words) == CUDA_SUCCESS ? words : nullptr;
    };
    const char* const name = text(api.cuGetErrorName);
    const char* const words = text(api.cuGetErrorString);
    return fmt::format("{} ({}){}{}", name != nullptr ? name : "CUDA error", static_cast<unsigned>(error),
                       words != nullptr ? ": " : "", words != nullptr ? words : "");
}

}  // namespace kiln::device::cuda
