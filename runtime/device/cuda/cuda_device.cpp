#include "runtime/device/cuda/cuda_device.hpp"

#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "runtime/device/cuda/vendor.hpp"

namespace kiln::device::cuda {

Error Vendor::error(const Api& api, ErrorCode code, Stage stage, std::string_view what, int ordinal,
                    Status status) {
    return Error{code, stage, fmt::format("{} on device {}: {}", what, ordinal, describe(api, status))};
}

bool Vendor::is_earlier_failure(int status) {
    switch (status) {
        case CUDA_ERROR_INVALID_VALUE:
        case CUDA_ERROR_INVALID_IMAGE:
        case CUDA_ERROR_NO_BINARY_FOR_GPU:
        case CUDA_ERROR_INVALID_PTX:
        case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
        case CUDA_ERROR_INVALID_SOURCE:
        case CUDA_ERROR_NOT_FOUND:
        case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
        case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
        case CUDA_ERROR_NOT_SUPPORTED:
        case CUDA_ERROR_INVALID_CLUSTER_SIZE:
            return false;
        default:
            return true;
    }
}

CUresult Vendor::force_in(const Api& api, int ordinal, Function function) {
    // A driver that loads lazily and is too old for this call loads at the first question below.
    CUresult error = api.cuFuncLoad != nullptr ? api.cuFuncLoad(function) : CUDA_SUCCESS;
    int limit = 0, fixed = 0;
    if (error == CUDA_SUCCESS) {
        error = api.cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
    }
    if (error == CUDA_SUCCESS) {
        error =
            api.cuDeviceGetAttribute(&limit, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, ordinal);
    }
    if (error == CUDA_SUCCESS && limit > fixed) {
        error =
            api.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, limit - fixed);
    }
    return error;
}

namespace {

// Since compute capability 9.0 a code object may use what only its own processor has: that is what templates
// are written for.
std::string target_of(int major, int minor) {
    return fmt::format("sm_{}{}{}", major, minor, major >= 9 ? "a" : "");
}

class CudaDevice final : public driver::DriverDevice<Vendor> {
  public:
    using DriverDevice::DriverDevice;

    int launch(Function function, const LaunchShape& shape, Stream stream, void* kernargs,
               std::size_t kernarg_bytes) const noexcept override {
        const int error = DriverDevice::launch(function, shape, stream, kernargs, kernarg_bytes);
        if (error != CUDA_ERROR_INVALID_CONTEXT) [[likely]] {
            return error;
        }
        return launch_entering(function, shape, stream, kernargs, kernarg_bytes);
    }

    Result<void> copy_to_device(void* destination, ByteView source, Stream stream) override {
        return complete(driver::Entry{api_.cuMemcpyHtoDAsync_v2, "cuMemcpyHtoDAsync_v2"}, source.size(),
                        stream, Vendor::to_memory(destination), source.data(), source.size());
    }

    Result<void> copy_to_host(std::span<std::byte> destination, const void* source, Stream stream) override {
        return complete(driver::Entry{api_.cuMemcpyDtoHAsync_v2, "cuMemcpyDtoHAsync_v2"}, destination.size(),
                        stream, destination.data(), Vendor::to_memory(source), destination.size());
    }

    Result<void> fill(void* destination, std::byte value, std::size_t bytes, Stream stream) override {
        return complete(driver::Entry{api_.cuMemsetD8Async, "cuMemsetD8Async"}, bytes, stream,
                        Vendor::to_memory(destination), std::to_integer<unsigned char>(value), bytes);
    }

    Result<ExecutionCounts> take_counts() override {
        return fail(ErrorCode::not_found, Stage::device,
                    fmt::format("device {} does not count", info_.ordinal));
    }

    Result<void> set_rules(const SimulationRules&) override {
        return fail(ErrorCode::not_found, Stage::device,
                    fmt::format("device {} is not simulated", info_.ordinal));
    }

  private:
    // A thread that has not used CUDA yet: what the runtime would do for good, we do for this call.
    [[gnu::cold, gnu::noinline]] int launch_entering(Function function, const LaunchShape& shape,
                                                     Stream stream, void* kernargs,
                                                     std::size_t kernarg_bytes) const noexcept {
        CUcontext current = nullptr;
        if (api_.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != nullptr) {
            return CUDA_ERROR_INVALID_CONTEXT;
        }
        const driver::CurrentDevice<Vendor> own(*library_, info_.ordinal);
        return own.error() == CUDA_SUCCESS
                   ? DriverDevice::launch(function, shape, stream, kernargs, kernarg_bytes)
                   : static_cast<int>(own.error());
    }
};

}  // namespace

Result<std::shared_ptr<Device>> open_device(driver::LibraryPointer opened, int ordinal, const DriverConfig&) {
    auto library = std::static_pointer_cast<const Library>(std::move(opened));
    const Api& api = library->api;
    const auto refused = [&](const char* what, CUresult error) {
        return tl::unexpected(
            Vendor::error(api, ErrorCode::environment, Stage::device, what, ordinal, error));
    };
    CUdevice handle = -1;
    if (const CUresult error = api.cuDeviceGet(&handle, ordinal); error != CUDA_SUCCESS) {
        return refused("cuDeviceGet", error);
    }
    // cuCtxGetDevice answers with a handle, and the launch path takes it for the ordinal.
    if (handle != ordinal) {
        return fail(ErrorCode::environment, Stage::device,
                    fmt::format("{}: expected device {} to have the handle {}, found {}",
                                library->path.string(), ordinal, ordinal, handle));
    }
    std::array<char, 256> name{};
    if (const CUresult error = api.cuDeviceGetName(name.data(), static_cast<int>(name.size()), handle);
        error != CUDA_SUCCESS) {
        return refused("cuDeviceGetName", error);
    }
    DeviceInfo info{.name = name.data(), .target = {}, .ordinal = ordinal};
    if (const CUresult error = api.cuDeviceTotalMem_v2(&info.memory_bytes, handle); error != CUDA_SUCCESS) {
        return refused("cuDeviceTotalMem_v2", error);
    }
    int major = 0, minor = 0, cache = 0;
    for (const auto& [value, attribute] :
         {std::pair{&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
          {&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
          {&info.num_compute_units, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
          {&cache, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE}}) {
        if (const CUresult error = api.cuDeviceGetAttribute(value, attribute, handle);
            error != CUDA_SUCCESS) {
            return refused("cuDeviceGetAttribute", error);
        }
    }
    info.target = target_of(major, minor);
    info.last_cache_bytes = static_cast<std::size_t>(cache);
    int version = 0;
    if (api.cuDriverGetVersion != nullptr && api.cuDriverGetVersion(&version) == CUDA_SUCCESS) {
        info.driver = fmt::format("CUDA driver {}.{}", version / 1000, version % 1000 / 10);
    }
    return std::make_shared<CudaDevice>(std::move(library), std::move(info));
}

}  // namespace kiln::device::cuda
