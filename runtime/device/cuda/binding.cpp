#include "runtime/device/cuda/binding.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "runtime/device/cuda/cuda_device.hpp"

namespace kiln::device::cuda {
namespace {

constexpr const char* kInstalled[] = {"libcuda.so.1"};

Result<std::shared_ptr<driver::Library>> start(void* handle, const std::string& path) {
    auto api = resolve(handle, path);
    if (!api) {
        return fail(api);
    }
    int num_devices = 0;
    CUresult error = api->cuInit(0);
    if (error == CUDA_ERROR_STUB_LIBRARY) {  // which has no words for its errors
        return fail(
            ErrorCode::environment, Stage::device,
            fmt::format("{} is a toolkit's stub, there to link with: expected a driver's own library, "
                        "libcuda.so.1",
                        path));
    }
    if (error == CUDA_SUCCESS) {
        error = api->cuDeviceGetCount(&num_devices);
    }
    if (error != CUDA_SUCCESS || num_devices <= 0) {
        return fail(ErrorCode::environment, Stage::device,
                    fmt::format("{} reports no device: {}", path,
                                error != CUDA_SUCCESS ? describe(*api, error) : "the count is 0"));
    }
    return std::make_shared<Library>(*api, num_devices);
}

}  // namespace

Library::Library(const Api& entry_points, int count)
    : api(entry_points),
      contexts_(std::make_unique<std::atomic<CUcontext>[]>(static_cast<std::size_t>(count))) {
    num_devices = count;
}

CUresult Library::primary_context(int ordinal, CUcontext* context) const {
    auto& known = contexts_[static_cast<std::size_t>(ordinal)];
    *context = known.load(std::memory_order_acquire);
    if (*context != nullptr) {
        return CUDA_SUCCESS;
    }
    // Two threads may both retain it: the driver counts, and hands both the same one.
    const CUresult error = api.cuDevicePrimaryCtxRetain(context, ordinal);
    if (error == CUDA_SUCCESS) {
        known.store(*context, std::memory_order_release);
    }
    return error;
}

const driver::Family& family() {
    static constexpr driver::Family kCuda{.what = "CUDA driver",
                                          .variable = "KILN_CUDA_LIBRARY",
                                          .stem = "libcuda.so",
                                          .installed = kInstalled,
                                          .configured = &DriverConfig::cuda_library,
                                          .start = start,
                                          .open = open_device};
    return kCuda;
}

}  // namespace kiln::device::cuda
