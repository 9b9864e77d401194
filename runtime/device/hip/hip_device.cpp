#include "runtime/device/hip/hip_device.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"

namespace kiln::device::hip {

Error driver_error(const Api& api, ErrorCode code, Stage stage, std::string_view what, int ordinal,
                   hipError_t error) {
    std::string message =
        fmt::format("{} on device {}: {}", what, ordinal, describe(api, static_cast<int>(error)));
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

bool is_earlier_failure(int error) {
    switch (error) {
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

CurrentDevice::CurrentDevice(const Api& api, int ordinal, Entering entering) : api_(api) {
    int current = -1;
    const auto enter = [&] {
        hipError_t error = api_.hipGetDevice(&current);
        if (error == hipSuccess && current != ordinal) {
            // Put back even after a failure, which may have come with the switch.
            previous_ = previous_ < 0 ? current : previous_;
            error = api_.hipSetDevice(ordinal);
        }
        return error;
    };
    error_ = enter();
    if (error_ != hipSuccess && entering == Entering::insist) {
        api_.hipGetLastError();
        overcome_ = std::exchange(error_, enter());
    }
    if (error_ != hipSuccess) {
        api_.hipGetLastError();
    }
}

CurrentDevice::~CurrentDevice() {
    if (previous_ < 0) {
        return;
    }
    hipError_t error = hipSuccess;
    for (int attempt = 0; attempt < 2; ++attempt) {
        error = api_.hipSetDevice(previous_);
        if (error == hipSuccess) {
            return;
        }
        api_.hipGetLastError();
    }
    log::error("device {} could not be made current again: {}", previous_,
               hip::describe(api_, static_cast<int>(error)));
}

hipError_t RelaxedCapture::exchange() {
    const hipStreamCaptureMode given = mode_;
    const hipError_t error = api_.hipThreadExchangeStreamCaptureMode(&mode_);
    if (error != hipSuccess) {
        api_.hipGetLastError();
    }
    if (error == hipSuccess || mode_ != given) {
        exchanged_ = !exchanged_;
    }
    return error;
}

RelaxedCapture::RelaxedCapture(const Api& api, Entering entering) : api_(api) {
    if (api_.hipThreadExchangeStreamCaptureMode == nullptr) {
        return;
    }
    error_ = exchange();
    if (error_ != hipSuccess && entering == Entering::insist) {
        error_ = exchanged_ ? hipSuccess : exchange();
    }
}

RelaxedCapture::~RelaxedCapture() {
    if (!exchanged_ || mode_ == hipStreamCaptureModeRelaxed) {  // or there is nothing to put back
        return;
    }
    hipError_t error = hipSuccess;
    for (int attempt = 0; attempt < 2 && exchanged_; ++attempt) {
        error = exchange();
    }
    if (exchanged_) {
        log::error("the thread's capture mode could not be put back: {}",
                   hip::describe(api_, static_cast<int>(error)));
    }
}

SimPlaces::SimPlaces(const Api& api, const DriverConfig& config) : api_(api) {
    if (api_.kiln_sim_push_places != nullptr) {
        const kiln_sim_places places{.struct_bytes = sizeof(kiln_sim_places),
                                     .cache_folder = config.sim_cache_folder.c_str(),
                                     .worker = config.sim_worker.c_str()};
        api_.kiln_sim_push_places(&places);
    }
}

SimPlaces::~SimPlaces() {
    if (api_.kiln_sim_pop_places != nullptr) {
        api_.kiln_sim_pop_places();
    }
}

namespace {

hipStream_t stream_of(Stream stream) {
    return static_cast<hipStream_t>(stream);
}
hipEvent_t event_of(Event event) {
    return static_cast<hipEvent_t>(event);
}

class HipDevice final : public Device {
  public:
    HipDevice(std::shared_ptr<const Library> library, DeviceInfo info, const DriverConfig& config)
        : library_(std::move(library)),
          api_(library_->api),
          launch_(api_.hipModuleLaunchKernel),
          info_(std::move(info)),
          config_(config) {}

    const DeviceInfo& info() const override { return info_; }

    Result<std::unique_ptr<Module>> load(ByteView code_object) override {
        if (auto alone = check_alone(*library_); !alone) {
            return fail(alone);
        }
        const SimPlaces places(api_, config_);
        return load_module(library_, info_.ordinal, code_object);
    }

    int launch(Function function, const LaunchShape& shape, Stream stream, void* kernargs,
               std::size_t kernarg_bytes) const noexcept override {
        void* extra[] = {reinterpret_cast<void*>(kLaunchParamBufferPointer), kernargs,
                         reinterpret_cast<void*>(kLaunchParamBufferSize), &kernarg_bytes,
                         reinterpret_cast<void*>(kLaunchParamEnd)};
        const hipError_t error = launch_(static_cast<hipFunction_t>(function), shape.grid.x, shape.grid.y,
                                         shape.grid.z, shape.block.x, shape.block.y, shape.block.z,
                                         shape.dynamic_lds_bytes, stream_of(stream), nullptr, extra);
        if (error != hipSuccess) [[unlikely]] {
            api_.hipGetLastError();
        }
        return static_cast<int>(error);
    }

    std::string describe(int driver_error) const override {
        std::string words = hip::describe(api_, driver_error);
        const char* const fault =
            api_.kiln_sim_last_fault != nullptr ? api_.kiln_sim_last_fault(info_.ordinal) : "";
        if (*fault != '\0') {
            words += fmt::format(": {}", fault);
        }
        return words;
    }

    bool is_earlier_failure(int driver_error) const noexcept override {
        return hip::is_earlier_failure(driver_error);
    }

    int current_ordinal() const noexcept override {
        int ordinal = -1;
        if (api_.hipGetDevice(&ordinal) != hipSuccess) [[unlikely]] {
            api_.hipGetLastError();
            return -1;
        }
        return ordinal;
    }

    Result<void> make_current() override {
        const hipError_t error = api_.hipSetDevice(info_.ordinal);
        if (error != hipSuccess) {
            return tl::unexpected(failed("hipSetDevice", error));
        }
        return {};
    }

    Result<void*> allocate(std::size_t bytes) override {
        void* pointer = nullptr;
        const auto done = call(api_.hipMalloc, fmt::format("hipMalloc of {} bytes", bytes), &pointer, bytes);
        return done.map([&] { return pointer; });
    }

    Result<void> free(void* pointer) override { return destroy(api_.hipFree, "hipFree", pointer); }

    Result<void> copy_to_device(void* destination, ByteView source, Stream stream) override {
        return copy(destination, source.data(), source.size(), hipMemcpyHostToDevice, stream);
    }

    Result<void> copy_to_host(std::span<std::byte> destination, const void* source, Stream stream) override {
        return copy(destination.data(), source, destination.size(), hipMemcpyDeviceToHost, stream);
    }

    Result<void> fill(void* destination, std::byte value, std::size_t bytes, Stream stream) override {
        auto done = call(api_.hipMemsetAsync, fmt::format("hipMemsetAsync of {} bytes", bytes), destination,
                         std::to_integer<int>(value), bytes, stream_of(stream));
        return done ? synchronize(stream) : done;
    }

    Result<Stream> create_stream() override {
        hipStream_t stream = nullptr;
        const auto done =
            call(api_.hipStreamCreateWithFlags, "hipStreamCreateWithFlags", &stream, hipStreamNonBlocking);
        return done.map([&] { return static_cast<Stream>(stream); });
    }

    Result<void> destroy_stream(Stream stream) override {
        return destroy(api_.hipStreamDestroy, "hipStreamDestroy", stream_of(stream));
    }

    Result<void> synchronize(Stream stream) override {
        return call(api_.hipStreamSynchronize, "hipStreamSynchronize", stream_of(stream));
    }

    Result<Event> create_event() override {
        hipEvent_t event = nullptr;
        const auto done =
            call(api_.hipEventCreateWithFlags, "hipEventCreateWithFlags", &event, hipEventDefault);
        return done.map([&] { return static_cast<Event>(event); });
    }

    Result<void> destroy_event(Event event) override {
        return destroy(api_.hipEventDestroy, "hipEventDestroy", event_of(event));
    }

    Result<void> record(Event event, Stream stream) override {
        return call(api_.hipEventRecord, "hipEventRecord", event_of(event), stream_of(stream));
    }

    Result<float> elapsed_milliseconds(Event start, Event stop) override {
        float milliseconds = 0;
        const auto done = call(api_.hipEventElapsedTime, "hipEventElapsedTime", &milliseconds,
                               event_of(start), event_of(stop));
        return done.map([&] { return milliseconds; });
    }

    Result<bool> is_capturing(Stream stream) const override {
        if (api_.hipStreamIsCapturing == nullptr) {
            return false;
        }
        const CurrentDevice current(api_, info_.ordinal);
        if (current.error() != hipSuccess) {
            return tl::unexpected(failed("hipStreamIsCapturing", current.error()));
        }
        hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
        const hipError_t error = api_.hipStreamIsCapturing(stream_of(stream), &status);
        // The null stream, while a stream that waits for it captures.
        if (error == hipErrorStreamCaptureImplicit) {
            api_.hipGetLastError();
            return true;
        }
        if (error != hipSuccess) {
            return tl::unexpected(failed("hipStreamIsCapturing", error));
        }
        return status != hipStreamCaptureStatusNone;
    }

    Result<void> begin_capture(Stream stream) override {
        return call(api_.hipStreamBeginCapture, "hipStreamBeginCapture", stream_of(stream),
                    hipStreamCaptureModeGlobal);
    }

    Result<Graph> end_capture(Stream stream) override {
        hipGraph_t graph = nullptr;
        const auto done = destroy(api_.hipStreamEndCapture, "hipStreamEndCapture", stream_of(stream), &graph);
        if (!done) {
            if (graph != nullptr) {  // the failure was an earlier one's
                static_cast<void>(destroy(api_.hipGraphDestroy, "hipGraphDestroy", graph));
            }
            return tl::unexpected(done.error());
        }
        hipGraphExec_t executable = nullptr;
        auto made =
            call(api_.hipGraphInstantiateWithFlags, "hipGraphInstantiateWithFlags", &executable, graph, 0ULL);
        auto dropped = destroy(api_.hipGraphDestroy, "hipGraphDestroy", graph);
        if (made && !dropped) {
            static_cast<void>(destroy_graph(static_cast<Graph>(executable)));
        }
        return dropped ? made.map([&] { return static_cast<Graph>(executable); })
                       : tl::unexpected(dropped.error());
    }

    Result<void> replay(Graph graph, Stream stream) override {
        return call(api_.hipGraphLaunch, "hipGraphLaunch", static_cast<hipGraphExec_t>(graph),
                    stream_of(stream));
    }

    Result<void> destroy_graph(Graph graph) override {
        return destroy(api_.hipGraphExecDestroy, "hipGraphExecDestroy", static_cast<hipGraphExec_t>(graph));
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
        return ExecutionCounts{.instructions = counts.instructions,
                               .valu = counts.valu,
                               .mfma = counts.mfma,
                               .salu = counts.salu,
                               .smem = counts.smem,
                               .vmem = counts.vmem,
                               .lds = counts.lds,
                               .global_bytes_read = counts.global_bytes_read,
                               .global_bytes_written = counts.global_bytes_written,
                               .scalar_bytes_read = counts.scalar_bytes_read,
                               .lds_bytes_read = counts.lds_bytes_read,
                               .lds_bytes_written = counts.lds_bytes_written,
                               .work_groups = counts.work_groups,
                               .waves = counts.waves};
    }

  private:
    Error failed(std::string_view what, hipError_t error) const {
        return driver_error(api_, ErrorCode::device_failed, Stage::device, what, info_.ordinal, error);
    }

    // One call with this device current. `what` names the entry point, for the error.
    template <class... Parameters, class... Arguments>
    Result<void> call(hipError_t (*entry)(Parameters...), std::string_view what,
                      Arguments... arguments) const {
        return enter(Entering::once, entry, what, arguments...);
    }
    // The same for a call that must not be left out because something else has failed before.
    template <class... Parameters, class... Arguments>
    Result<void> destroy(hipError_t (*entry)(Parameters...), std::string_view what,
                         Arguments... arguments) const {
        return enter(Entering::insist, entry, what, arguments...);
    }
    template <class... Parameters, class... Arguments>
    Result<void> enter(Entering entering, hipError_t (*entry)(Parameters...), std::string_view what,
                       Arguments... arguments) const {
        if (entry == nullptr) {
            return fail(ErrorCode::environment, Stage::device,
                        fmt::format("{} lacks {}", library_->path.string(), what));
        }
        const CurrentDevice current(api_, info_.ordinal, entering);
        hipError_t error = current.error() != hipSuccess ? current.error() : entry(arguments...);
        error = error == hipSuccess ? current.overcome() : error;
        if (error != hipSuccess) {
            return tl::unexpected(failed(what, error));
        }
        return {};
    }

    Result<void> copy(void* destination, const void* source, std::size_t bytes, hipMemcpyKind kind,
                      Stream stream) {
        auto done = call(api_.hipMemcpyAsync, fmt::format("hipMemcpyAsync of {} bytes", bytes), destination,
                         source, bytes, kind, stream_of(stream));
        return done ? synchronize(stream) : done;
    }

    // Constant after construction.
    const std::shared_ptr<const Library> library_;
    const Api& api_;
    // Beside the object: one indirection less on the launch path.
    decltype(Api::hipModuleLaunchKernel) const launch_;
    const DeviceInfo info_;
    const DriverConfig config_;
};

}  // namespace

Result<std::shared_ptr<Device>> open_device(std::shared_ptr<const Library> library, int ordinal,
                                            const DriverConfig& config) {
    hipDeviceProp_t properties{};
    const hipError_t error = library->api.hipGetDevicePropertiesR0600(&properties, ordinal);
    if (error != hipSuccess) {
        return tl::unexpected(driver_error(library->api, ErrorCode::environment, Stage::device,
                                           "hipGetDevicePropertiesR0600", ordinal, error));
    }
    DeviceInfo info{.name = properties.name,
                    .target = properties.gcnArchName,
                    .ordinal = ordinal,
                    .num_compute_units = properties.multiProcessorCount,
                    .memory_bytes = properties.totalGlobalMem,
                    .simulated = library->api.simulated()};
    return std::make_shared<HipDevice>(std::move(library), std::move(info), config);
}

}  // namespace kiln::device::hip
