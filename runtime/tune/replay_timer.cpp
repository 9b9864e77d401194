#include "runtime/tune/replay_timer.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace kiln::tune {

namespace {

using device::Device;
using device::Stream;

constexpr std::size_t kCachesFull = 3;  // what the copies come to, in last caches
// Of a replay, so that its own start is little of it: with 64, launches of 4 us came out 0.3 us longer.
constexpr std::size_t kLaunches = 512;
constexpr std::size_t kMemoryParts = 2;  // of the device's memory, one for the copies

// A thing of the driver's that is given back whatever happens.
template <class Handle>
class Owned {
  public:
    Owned(Device& device, Handle handle, Result<void> (Device::*destroy)(Handle))
        : device_(device), handle_(handle), destroy_(destroy) {}
    ~Owned() { static_cast<void>((device_.*destroy_)(handle_)); }
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    [[nodiscard]] Handle get() const { return handle_; }

  private:
    Device& device_;
    const Handle handle_;
    Result<void> (Device::*const destroy_)(Handle);
};

// How many copies of the weights the last cache can not hold, as far as the memory takes them.
std::size_t num_copies(const device::DeviceInfo& info, const std::vector<service::TrialInput>& weights) {
    std::size_t read = 0, taken = 0;
    for (const service::TrialInput& input : weights) {
        std::size_t parts = 0;
        for (const service::TrialPart& part : input.parts) {
            parts += part.bytes.size();
        }
        read += input.parts.empty() ? input.bytes.size() : parts;
        taken += input.parts.empty() ? input.bytes.size() : input.whole_bytes;
    }
    if (read == 0) {
        return 1;
    }
    const std::size_t wanted = kCachesFull * info.last_cache_bytes / read + 2;
    return std::clamp<std::size_t>(info.memory_bytes / kMemoryParts / taken, 1, wanted);
}

Result<Device::Graph> record(Device& device, Stream stream, const std::function<Result<void>()>& enqueue) {
    if (Result<void> begun = device.begin_capture(stream); !begun) {
        return fail(begun);
    }
    Result<void> enqueued = enqueue();
    Result<Device::Graph> graph = device.end_capture(stream);
    if (!enqueued && graph) {
        static_cast<void>(device.destroy_graph(*graph));
    }
    return enqueued ? std::move(graph) : fail(enqueued);
}

}  // namespace

Result<std::unique_ptr<ReplayTimer>> ReplayTimer::create(std::shared_ptr<Device> device,
                                                         std::shared_ptr<const service::TrialCase> arrays) {
    std::vector<Weights> copies(num_copies(device->info(), arrays->weights()));
    for (Weights& copy : copies) {
        Result<Weights> loaded = load_weights(device, *arrays);
        if (!loaded) {
            return fail(loaded);
        }
        copy = *std::move(loaded);
    }
    return std::unique_ptr<ReplayTimer>(
        new ReplayTimer(std::move(device), std::move(arrays), std::move(copies)));
}

Result<std::vector<double>> ReplayTimer::time(const service::Plan& plan, std::int64_t m, std::int64_t warmup,
                                              std::int64_t iters) const {
    const Result<LaunchArrays> arrays = LaunchArrays::create(case_, plan, m);
    if (!arrays) {
        return tl::unexpected<Error>(arrays.error());
    }
    const Result<Stream> made_stream = device_->create_stream();
    if (!made_stream) {
        return tl::unexpected<Error>(made_stream.error());
    }
    const Owned stream(*device_, *made_stream, &Device::destroy_stream);

    const std::size_t launches = (kLaunches + copies_.size() - 1) / copies_.size() * copies_.size();
    const Result<Device::Graph> recorded = record(*device_, stream.get(), [&] {
        Result<void> enqueued;
        for (std::size_t i = 0; i < launches && enqueued; ++i) {
            enqueued = arrays->enqueue(plan, stream.get(), copies_[i % copies_.size()]);
        }
        return enqueued;
    });
    if (!recorded) {
        return tl::unexpected<Error>(recorded.error());
    }
    const Owned graph(*device_, *recorded, &Device::destroy_graph);
    const Result<device::Event> made_start = device_->create_event(), made_stop = device_->create_event();
    if (!made_start || !made_stop) {
        return tl::unexpected<Error>(!made_start ? made_start.error() : made_stop.error());
    }
    const Owned start(*device_, *made_start, &Device::destroy_event);
    const Owned stop(*device_, *made_stop, &Device::destroy_event);

    std::vector<double> samples;
    for (std::int64_t i = 0; i < warmup + iters; ++i) {
        const Result<float> milliseconds =
            device_->record(start.get(), stream.get())
                .and_then([&] { return device_->replay(graph.get(), stream.get()); })
                .and_then([&] { return device_->record(stop.get(), stream.get()); })
                .and_then([&] { return device_->synchronize(stream.get()); })
                .and_then([&] { return device_->elapsed_milliseconds(start.get(), stop.get()); });
        if (!milliseconds) {
            return tl::unexpected<Error>(milliseconds.error());
        }
        if (i >= warmup) {
            samples.push_back(*milliseconds * 1e3 / static_cast<double>(launches));
        }
    }
    return samples;
}

}  // namespace kiln::tune
