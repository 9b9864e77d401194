#include "runtime/device/hip/hip_device.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "runtime/device/driver/driver_device.hpp"
#include "runtime/device/hip/vendor.hpp"

namespace kiln::device::hip {

Error Vendor::error(const Api& api, ErrorCode code, Stage stage, std::string_view what, int ordinal,
                    Status status) {
    std::string message = fmt::format("{} on device {}: {}", what, ordinal, describe(api, status));
    // The simulator knows more: why this call was refused, else what the device stopped at.
    std::string more = api.kiln_sim_last_message != nullptr ? api.kiln_sim_last_message() : "";
    if (more.empty() && api.kiln_sim_last_fault != nullptr) {
        more = api.kiln_sim_last_fault(ordinal);
    }
    if (!more.empty()) {
        message += fmt::format(": {}", more);
    }
    api.hipGetLastError();
    return Error{code, stage, std::move(message)};
}

bool Vendor::is_earlier_failure(int status) {
    switch (status) {
        case hipErrorInvalidValue:
        case hipErrorInvalidConfiguration:
        case hipErrorInvalidDeviceFunction:
        case hipErrorInvalidImage:
        case hipErrorNoBinaryForGpu:
        case hipErrorNotFound:
        case hipErrorLaunchOutOfResources:
        case hipErrorNotSupported:
            return false;
        default:
            return true;
    }
}

hipError_t Vendor::force_in(const Api& api, int, Function function) {
    if (api.hipFuncGetAttribute == nullptr) {
        return hipSuccess;
    }
    // Asking for a property makes a driver that loads lazily load now.
    int registers = 0;
    return api.hipFuncGetAttribute(&registers, HIP_FUNC_ATTRIBUTE_NUM_REGS, function);
}

namespace {

// Tells a simulator where the calling thread's loads find listings; a real driver has nothing to be told.
class SimPlaces {
  public:
    SimPlaces(const Api& api, const DriverConfig& config) : api_(api) {
        if (api_.kiln_sim_push_places != nullptr) {
            const kiln_sim_places places{.struct_bytes = sizeof(kiln_sim_places),
                                         .cache_folder = config.sim_cache_folder.c_str(),
                                         .worker = config.sim_worker.c_str(),
                                         .cache_path = config.sim_cache_path.c_str()};
            api_.kiln_sim_push_places(&places);
        }
    }
    ~SimPlaces() {
        if (api_.kiln_sim_pop_places != nullptr) {
            api_.kiln_sim_pop_places();
        }
    }
    SimPlaces(const SimPlaces&) = delete;
    SimPlaces& operator=(const SimPlaces&) = delete;

  private:
    const Api& api_;
};

ExecutionCounts from_abi(const kiln_sim_counts& counts) {
    return ExecutionCounts{.instructions = counts.instructions,
                           .valu = counts.valu,
                           .transcendental = counts.transcendental,
                           .mfma = counts.mfma,
                           .mfma_cycles = counts.mfma_cycles,
                           .salu = counts.salu,
                           .branches = counts.branches,
                           .waits = counts.waits,
                           .smem = counts.smem,
                           .vmem = counts.vmem,
                           .lds = counts.lds,
                           .global_bytes_read = counts.global_bytes_read,
                           .global_bytes_written = counts.global_bytes_written,
                           .global_line_requests = counts.global_line_requests,
                           .global_lines_read = counts.global_lines_read,
                           .global_lines_written = counts.global_lines_written,
                           .die_lines_read = counts.die_lines_read,
                           .scalar_bytes_read = counts.scalar_bytes_read,
                           .lds_bytes_read = counts.lds_bytes_read,
                           .lds_bytes_written = counts.lds_bytes_written,
                           .lds_accesses = counts.lds_accesses,
                           .lds_cycles = counts.lds_cycles,
                           .lds_conflict_cycles = counts.lds_conflict_cycles,
                           .work_groups = counts.work_groups,
                           .waves = counts.waves};
}

class HipDevice final : public driver::DriverDevice<Vendor> {
  public:
    HipDevice(std::shared_ptr<const Library> library, DeviceInfo info, const DriverConfig& config)
        : DriverDevice(std::move(library), std::move(info)), config_(config) {}

    Result<std::unique_ptr<Module>> load(ByteView code_object) override {
        const SimPlaces places(api_, config_);
        return DriverDevice::load(code_object);
    }

    std::string describe(int driver_error) const override {
        std::string words = DriverDevice::describe(driver_error);
        const char* const fault =
            api_.kiln_sim_last_fault != nullptr ? api_.kiln_sim_last_fault(info_.ordinal) : "";
        if (*fault != '\0') {
            words += fmt::format(": {}", fault);
        }
        return words;
    }

    Result<void> copy_to_device(void* destination, ByteView source, Stream stream) override {
        return complete(copies(), source.size(), stream, destination, source.data(), source.size(),
                        hipMemcpyHostToDevice);
    }

    Result<void> copy_to_host(std::span<std::byte> destination, const void* source, Stream stream) override {
        return complete(copies(), destination.size(), stream, destination.data(), source, destination.size(),
                        hipMemcpyDeviceToHost);
    }

    Result<void> fill(void* destination, std::byte value, std::size_t bytes, Stream stream) override {
        return complete(driver::Entry{api_.hipMemsetAsync, "hipMemsetAsync"}, bytes, stream, destination,
                        std::to_integer<int>(value), bytes);
    }

    Result<ExecutionCounts> take_counts() override {
        if (!api_.simulated()) {
            return fail(ErrorCode::not_found, Stage::device,
                        fmt::format("device {} does not count", info_.ordinal));
        }
        kiln_sim_counts counts{};
        counts.struct_bytes = sizeof counts;
        const auto error = static_cast<hipError_t>(api_.kiln_sim_take_counts(info_.ordinal, &counts));
        if (error != hipSuccess) {
            return tl::unexpected(failed("kiln_sim_take_counts", error));
        }
        return from_abi(counts);
    }

    Result<std::vector<ExecutionCounts>> launch_counts() override {
        std::vector<ExecutionCounts> all;
        while (api_.kiln_sim_next_launch_counts != nullptr) {
            kiln_sim_counts counts{};
            counts.struct_bytes = sizeof counts;
            const auto error =
                static_cast<hipError_t>(api_.kiln_sim_next_launch_counts(info_.ordinal, &counts));
            if (error == hipErrorNotFound) {
                Vendor::forget_error(api_);
                break;
            }
            if (error != hipSuccess) {
                return tl::unexpected(failed("kiln_sim_next_launch_counts", error));
            }
            all.push_back(from_abi(counts));
        }
        return all;
    }

    Result<void> set_rules(const SimulationRules& rules) override {
        if (api_.kiln_sim_set_rules == nullptr) {
            return fail(ErrorCode::not_found, Stage::device,
                        fmt::format("device {} is not simulated", info_.ordinal));
        }
        const auto text = [](const std::string& said) { return said.empty() ? nullptr : said.c_str(); };
        const kiln_sim_rules said = {sizeof said, text(rules.order), text(rules.scopes), text(rules.checks)};
        if (api_.kiln_sim_set_rules(info_.ordinal, nullptr) != hipSuccess ||
            api_.kiln_sim_set_rules(info_.ordinal, &said) != hipSuccess) {
            return fail(ErrorCode::bad_input, Stage::device, api_.kiln_sim_last_message());
        }
        return {};
    }

  private:
    driver::Entry<hipError_t(void*, const void*, std::size_t, hipMemcpyKind, hipStream_t)> copies() const {
        return {api_.hipMemcpyAsync, "hipMemcpyAsync"};
    }

    const DriverConfig config_;  // constant after construction
};

// HIP speaks of the L2 of a die alone; before the memory the MI300 and MI350 have another cache, of all dies.
std::size_t last_cache_of(const hipDeviceProp_t& properties) {
    constexpr std::size_t kLastCache = std::size_t{256} << 20;
    const std::string_view processor = properties.gcnArchName;
    const bool has_one = processor.starts_with("gfx942") || processor.starts_with("gfx950");
    return has_one ? kLastCache : static_cast<std::size_t>(properties.l2CacheSize);
}

}  // namespace

Result<std::shared_ptr<Device>> open_device(driver::LibraryPointer opened, int ordinal,
                                            const DriverConfig& config) {
    auto library = std::static_pointer_cast<const Library>(std::move(opened));
    hipDeviceProp_t properties{};
    const hipError_t error = library->api.hipGetDevicePropertiesR0600(&properties, ordinal);
    if (error != hipSuccess) {
        return tl::unexpected(Vendor::error(library->api, ErrorCode::environment, Stage::device,
                                            "hipGetDevicePropertiesR0600", ordinal, error));
    }
    DeviceInfo info{.name = properties.name,
                    .target = properties.gcnArchName,
                    .ordinal = ordinal,
                    .num_compute_units = properties.multiProcessorCount,
                    .memory_bytes = properties.totalGlobalMem,
                    .simulated = library->simulated};
    info.last_cache_bytes = last_cache_of(properties);
    int version = 0;
    if (library->simulated) {
        info.driver = "kiln simulator";
    } else if (library->api.hipDriverGetVersion != nullptr &&
               library->api.hipDriverGetVersion(&version) == hipSuccess) {
        info.driver = fmt::format("HIP runtime {}.{}.{}", version / 10'000'000, version / 100'000 % 100,
                                  version % 100'000);
    }
    return std::make_shared<HipDevice>(std::move(library), std::move(info), config);
}

}  // namespace kiln::device::hip
