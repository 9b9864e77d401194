// The neutral interface over a vendor's driver, as far as it is the same for every vendor: see guards.hpp and
// module.hpp for `Vendor`, which also has
//
// clang-format off
//  Stream, Event, Graph, GraphExec, Memory     the driver's handles
//  launch_kernel                               the entry point of a launch, and the keys of its list of
//                                              arguments: kParamBufferPointer, kParamBufferSize, kParamEnd
//  allocate, free, create_stream, ... destroy_graph_exec
//                                              entry points with their names; null where the library lacks one
// clang-format on
//
// A vendor's own device derives from it and adds the copies, whose signatures differ.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "runtime/device/device.hpp"
#include "runtime/device/driver/binding.hpp"
#include "runtime/device/driver/guards.hpp"
#include "runtime/device/driver/module.hpp"

namespace kiln::device::driver {

// An entry point and the name that an error has for it.
template <class Function>
struct Entry {
    Function* call;
    const char* name;
};
template <class Function>
Entry(Function*, const char*) -> Entry<Function>;

template <class Vendor>
class DriverDevice : public Device {
  protected:
    using Library = typename Vendor::Library;
    using Status = typename Vendor::Status;
    using NativeStream = typename Vendor::Stream;

  public:
    DriverDevice(std::shared_ptr<const Library> library, DeviceInfo info)
        : library_(std::move(library)),
          api_(library_->api),
          launch_(Vendor::launch_kernel(api_)),
          info_(std::move(info)) {}

    const DeviceInfo& info() const override { return info_; }

    Result<std::unique_ptr<Module>> load(ByteView code_object) override {
        if (auto alone = check_alone(*library_); !alone) {
            return fail(alone);
        }
        return DriverModule<Vendor>::load(library_, info_.ordinal, code_object);
    }

    int launch(Function function, const LaunchShape& shape, Stream stream, void* kernargs,
               std::size_t kernarg_bytes) const noexcept override {
        void* extra[] = {reinterpret_cast<void*>(Vendor::kParamBufferPointer), kernargs,
                         reinterpret_cast<void*>(Vendor::kParamBufferSize), &kernarg_bytes,
                         reinterpret_cast<void*>(Vendor::kParamEnd)};
        const Status error = launch_(static_cast<typename Vendor::Function>(function), shape.grid.x,
                                     shape.grid.y, shape.grid.z, shape.block.x, shape.block.y, shape.block.z,
                                     shape.dynamic_lds_bytes, native(stream), nullptr, extra);
        if (error != Vendor::kSuccess) [[unlikely]] {
            Vendor::forget_error(api_);
        }
        return static_cast<int>(error);
    }

    std::string describe(int driver_error) const override {
        return Vendor::describe(api_, static_cast<Status>(driver_error));
    }

    bool is_earlier_failure(int driver_error) const noexcept override {
        return Vendor::is_earlier_failure(driver_error);
    }

    int current_ordinal() const noexcept override {
        int ordinal = -1;
        if (Vendor::get_current_ordinal(*library_, info_.ordinal, &ordinal) != Vendor::kSuccess)
            [[unlikely]] {
            Vendor::forget_error(api_);
            return -1;
        }
        return ordinal;
    }

    Result<void> make_current() override {
        typename Vendor::Current own{};
        Status error = Vendor::own_current(*library_, info_.ordinal, &own);
        if (error == Vendor::kSuccess) {
            error = Vendor::set_current(api_, own);
        }
        if (error != Vendor::kSuccess) {
            return tl::unexpected(failed(Vendor::kSetCurrentName, error));
        }
        return {};
    }

    // Of no bytes: null, as HIP has it; CUDA would refuse.
    Result<void*> allocate(std::size_t bytes) override {
        if (bytes == 0) {
            return nullptr;
        }
        typename Vendor::Memory memory{};
        const auto entry = Vendor::allocate(api_);
        const auto done = enter(Entering::once, entry.call, fmt::format("{} of {} bytes", entry.name, bytes),
                                &memory, bytes);
        return done.map([&] { return Vendor::to_pointer(memory); });
    }

    Result<void> free(void* pointer) override {
        if (pointer == nullptr) {
            return {};
        }
        return destroy(Vendor::free(api_), Vendor::to_memory(pointer));
    }

    Result<Stream> create_stream() override {
        NativeStream stream{};
        const auto done = call(Vendor::create_stream(api_), &stream, Vendor::kNonBlocking);
        return done.map([&] { return static_cast<Stream>(stream); });
    }

    Result<void> destroy_stream(Stream stream) override {
        return destroy(Vendor::destroy_stream(api_), native(stream));
    }

    Result<void> synchronize(Stream stream) override {
        return call(Vendor::synchronize_stream(api_), native(stream));
    }

    Result<Event> create_event() override {
        typename Vendor::Event event{};
        const auto done = call(Vendor::create_event(api_), &event, Vendor::kDefaultEvent);
        return done.map([&] { return static_cast<Event>(event); });
    }

    Result<void> destroy_event(Event event) override {
        return destroy(Vendor::destroy_event(api_), static_cast<typename Vendor::Event>(event));
    }

    Result<void> record(Event event, Stream stream) override {
        return call(Vendor::record_event(api_), static_cast<typename Vendor::Event>(event), native(stream));
    }

    Result<float> elapsed_milliseconds(Event start, Event stop) override {
        float milliseconds = 0;
        const auto done =
            call(Vendor::elapsed_time(api_), &milliseconds, static_cast<typename Vendor::Event>(start),
                 static_cast<typename Vendor::Event>(stop));
        return done.map([&] { return milliseconds; });
    }

    Result<bool> is_capturing(Stream stream) const override {
        const auto entry = Vendor::is_capturing(api_);
        if (entry.call == nullptr) {
            return false;
        }
        const CurrentDevice<Vendor> current(*library_, info_.ordinal);
        if (current.error() != Vendor::kSuccess) {
            return tl::unexpected(failed(entry.name, current.error()));
        }
        auto status = Vendor::kNotCapturing;
        const Status error = entry.call(native(stream), &status);
        // The null stream, while a stream that waits for it captures.
        if (error == Vendor::kCaptureImplicit) {
            Vendor::forget_error(api_);
            return true;
        }
        if (error != Vendor::kSuccess) {
            return tl::unexpected(failed(entry.name, error));
        }
        return status != Vendor::kNotCapturing;
    }

    Result<void> begin_capture(Stream stream) override {
        return call(Vendor::begin_capture(api_), native(stream), Vendor::kGlobal);
    }

    Result<Graph> end_capture(Stream stream) override {
        typename Vendor::Graph graph{};
        const auto done = destroy(Vendor::end_capture(api_), native(stream), &graph);
        if (!done) {
            if (graph != nullptr) {  // the failure was an earlier one's
                static_cast<void>(destroy(Vendor::destroy_graph(api_), graph));
            }
            return tl::unexpected(done.error());
        }
        typename Vendor::GraphExec executable{};
        auto made = call(Vendor::instantiate_graph(api_), &executable, graph, 0ULL);
        auto dropped = destroy(Vendor::destroy_graph(api_), graph);
        if (made && !dropped) {
            static_cast<void>(destroy_graph(static_cast<Graph>(executable)));
        }
        return dropped ? made.map([&] { return static_cast<Graph>(executable); })
                       : tl::unexpected(dropped.error());
    }

    Result<void> replay(Graph graph, Stream stream) override {
        return call(Vendor::launch_graph(api_), static_cast<typename Vendor::GraphExec>(graph),
                    native(stream));
    }

    Result<void> destroy_graph(Graph graph) override {
        return destroy(Vendor::destroy_graph_exec(api_), static_cast<typename Vendor::GraphExec>(graph));
    }

  protected:
    [[nodiscard]] Error failed(std::string_view what, Status error) const {
        return Vendor::error(api_, ErrorCode::device_failed, Stage::device, what, info_.ordinal, error);
    }

    // One call with this device current.
    template <class Function, class... Arguments>
    Result<void> call(Entry<Function> entry, Arguments... arguments) const {
        return enter(Entering::once, entry.call, entry.name, arguments...);
    }
    // The same for a call that must not be left out because something else has failed before.
    template <class Function, class... Arguments>
    Result<void> destroy(Entry<Function> entry, Arguments... arguments) const {
        return enter(Entering::insist, entry.call, entry.name, arguments...);
    }
    // `what` is for the error: the entry point's name, and what more there is to say.
    template <class Function, class... Arguments>
    Result<void> enter(Entering entering, Function* entry, std::string_view what,
                       Arguments... arguments) const {
        if (entry == nullptr) {
            return fail(ErrorCode::environment, Stage::device,
                        fmt::format("{} lacks {}", library_->path.string(), what));
        }
        const CurrentDevice<Vendor> current(*library_, info_.ordinal, entering);
        Status error = current.error() != Vendor::kSuccess ? current.error() : entry(arguments...);
        error = error == Vendor::kSuccess ? current.overcome() : error;
        if (error != Vendor::kSuccess) {
            return tl::unexpected(failed(what, error));
        }
        return {};
    }
    // Of a copy or a fill of so many bytes, which is complete when this returns.
    template <class Function, class... Arguments>
    Result<void> complete(Entry<Function> entry, std::size_t bytes, Stream stream, Arguments... arguments) {
        auto done = enter(Entering::once, entry.call, fmt::format("{} of {} bytes", entry.name, bytes),
                          arguments..., native(stream));
        return done ? synchronize(stream) : done;
    }

    static NativeStream native(Stream stream) { return static_cast<NativeStream>(stream); }

    // Constant after construction.
    const std::shared_ptr<const Library> library_;
    const typename Vendor::Api& api_;
    // Beside the object: one indirection less on the launch path.
    const decltype(Vendor::launch_kernel(std::declval<const typename Vendor::Api&>())) launch_;
    const DeviceInfo info_;
};

}  // namespace kiln::device::driver
