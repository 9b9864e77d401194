#include "runtime/device/hip/api.hpp"

#include <fmt/format.h>

#include "runtime/device/driver/resolver.hpp"

namespace kiln::device::hip {

Result<Api> resolve(void* handle, const std::string& library) {
    Api api;
    driver::Resolver resolver(handle);
#define KILN_REQUIRE(name) resolver.require(api.name, #name)
#define KILN_FIND(name) resolver.find(api.name, #name)
    KILN_REQUIRE(hipGetDeviceCount);
    KILN_REQUIRE(hipGetDevice);
    KILN_REQUIRE(hipSetDevice);
    KILN_REQUIRE(hipGetDevicePropertiesR0600);
    KILN_REQUIRE(hipModuleLoadData);
    KILN_REQUIRE(hipModuleUnload);
    KILN_REQUIRE(hipModuleGetFunction);
    KILN_REQUIRE(hipModuleLaunchKernel);
    KILN_REQUIRE(hipGetLastError);

    KILN_FIND(hipDriverGetVersion);
    KILN_FIND(hipGetErrorName);
    KILN_FIND(hipGetErrorString);
    KILN_FIND(hipFuncGetAttribute);
    KILN_FIND(hipThreadExchangeStreamCaptureMode);
    KILN_FIND(hipMalloc);
    KILN_FIND(hipFree);
    KILN_FIND(hipMemcpyAsync);
    KILN_FIND(hipMemsetAsync);
    KILN_FIND(hipStreamCreateWithFlags);
    KILN_FIND(hipStreamDestroy);
    KILN_FIND(hipStreamSynchronize);
    KILN_FIND(hipStreamIsCapturing);
    KILN_FIND(hipStreamBeginCapture);
    KILN_FIND(hipStreamEndCapture);
    KILN_FIND(hipEventCreateWithFlags);
    KILN_FIND(hipEventDestroy);
    KILN_FIND(hipEventRecord);
    KILN_FIND(hipEventElapsedTime);
    KILN_FIND(hipGraphInstantiateWithFlags);
    KILN_FIND(hipGraphLaunch);
    KILN_FIND(hipGraphDestroy);
    KILN_FIND(hipGraphExecDestroy);

    KILN_FIND(kiln_sim_next_launch_counts);
    KILN_FIND(kiln_sim_take_counts);
    KILN_FIND(kiln_sim_last_fault);
    KILN_FIND(kiln_sim_last_message);
    KILN_FIND(kiln_sim_set_rules);
    KILN_FIND(kiln_sim_push_places);
    KILN_FIND(kiln_sim_pop_places);
#undef KILN_REQUIRE
#undef KILN_FIND
    if (!resolver.missing().empty()) {
        return fail(ErrorCode::environment, Stage::device,
                    fmt::format("{} is no HIP runtime of version 6 or newer: it lacks {}", library,
                                resolver.missing()));
    }
    return api;
}

std::string describe(const Api& api, int error) {
    const auto value = static_cast<hipError_t>(error);
    const char* name = api.hipGetErrorName != nullptr ? api.hipGetErrorName(value) : nullptr;
    const char* words = api.hipGetErrorString != nullptr ? api.hipGetErrorString(value) : nullptr;
    return fmt::format("{} ({}){}{}", name != nullptr ? name : "HIP error", error,
                       words != nullptr ? ": " : "", words != nullptr ? words : "");
}

}  // namespace kiln::device::hip
