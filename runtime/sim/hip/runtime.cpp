#include "runtime/sim/hip/runtime.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/log.hpp"

namespace kiln::sim::hip {
namespace {

constexpr int kMaxDevices = 16;
constexpr kiln_sim_config kDefaults{
    .struct_bytes = sizeof(kiln_sim_config), .num_devices = 2, .memory_bytes = 288ULL << 30, .threads = 0};

std::mutex configuration_mutex;
kiln_sim_config configuration = kDefaults;  // protected by configuration_mutex, as is the next
bool devices_exist = false;

// What configure() said, else the environment, else the defaults.
kiln_sim_config settle() {
    const std::scoped_lock lock(configuration_mutex);
    devices_exist = true;
    const char* const text = std::getenv("KILN_SIM_DEVICES");
    if (text != nullptr && configuration.num_devices == kDefaults.num_devices) {
        char* end = nullptr;
        const long value = std::strtol(text, &end, 10);
        if (end != text && *end == '\0' && value >= 1 && value <= kMaxDevices) {
            configuration.num_devices = static_cast<int>(value);
        } else {
            log::warning("KILN_SIM_DEVICES: expected 1 to {}, found \"{}\"; {} devices it is", kMaxDevices,
                         text, configuration.num_devices);
        }
    }
    return configuration;
}

}  // namespace

ThreadState& this_thread() {
    thread_local ThreadState state;
    return state;
}

hipError_t Runtime::configure(const kiln_sim_config& config) {
    const std::scoped_lock lock(configuration_mutex);
    if (devices_exist) {
        return hipErrorIllegalState;
    }
    if (config.struct_bytes != sizeof config || config.num_devices < 0 || config.num_devices > kMaxDevices) {
        return hipErrorInvalidValue;
    }
    configuration = kDefaults;
    if (config.num_devices != 0) {
        configuration.num_devices = config.num_devices;
    }
    if (config.memory_bytes != 0) {
        configuration.memory_bytes = config.memory_bytes;
    }
    configuration.threads = config.threads;
    return hipSuccess;
}

Runtime& Runtime::get() {
    // Never destroyed: threads of the program may call until the very end. Only the work is stopped.
    static Runtime* const runtime = new Runtime(settle());
    struct Stopper {
        ~Stopper() { runtime->stop(); }
    };
    static const Stopper stopper;
    return *runtime;
}

Runtime::Runtime(const kiln_sim_config& config) {
    for (int ordinal = 0; ordinal < config.num_devices; ++ordinal) {
        devices_.push_back(std::make_unique<SimDevice>(ordinal, config.memory_bytes, config.threads));
        null_streams_.push_back(std::make_shared<Stream>(*devices_.back(), Stream::Kind::null));
        all_streams_.push_back(null_streams_.back());
    }
}

void Runtime::stop() {
    std::vector<std::shared_ptr<Stream>> all;
    {
        const std::scoped_lock lock(mutex_);
        all = all_streams_;
    }
    for (const auto& stream : all) {
        stream->queue.abandon();
    }
    for (const auto& stream : all) {
        stream->queue.join();
    }
}

std::shared_ptr<Stream> Runtime::stream(hipStream_t handle) {
    const auto value = reinterpret_cast<std::uintptr_t>(handle);
    auto& thread = this_thread();
    if (value == 0 || value == kStreamLegacy) {
        return null_streams_[static_cast<std::size_t>(thread.device)];
    }
    if (value == kStreamPerThread) {
        thread.streams.resize(devices_.size());
        auto& own = thread.streams[static_cast<std::size_t>(thread.device)];
        if (own == nullptr) {
            own = create_stream(current(), Stream::Kind::blocking, 0);
        }
        return own;
    }
    return streams.find(handle);
}

std::shared_ptr<Stream> Runtime::create_stream(SimDevice& device, Stream::Kind kind, int priority) {
    auto stream = std::make_shared<Stream>(device, kind, priority);
    const std::scoped_lock lock(mutex_);
    all_streams_.push_back(stream);
    return stream;
}

void Runtime::retire(const std::shared_ptr<Stream>& stream) {
    Mark last;
    {
        const std::scoped_lock lock(mutex_);
        if (stream->capture != nullptr) {
            const auto capture = stream->capture;
            capture->invalidated = true;
            std::erase(capture->members, stream.get());
            if (capture->origin == stream.get()) {
                leave_capture(*capture);
            }
        }
        std::erase(all_streams_, stream);
        last = stream->queue.last();
    }
    last.wait();
}

// Work that a stream's next operation comes after, besides its own.
std::vector<Mark> Runtime::order_of(const Stream& stream) const {
    std::vector<Mark> after;
    if (stream.kind == Stream::Kind::null) {
        for (const auto& other : all_streams_) {
            if (&other->device == &stream.device && other->kind == Stream::Kind::blocking) {
                if (Mark mark = other->queue.last(); !mark.complete()) {
                    after.push_back(std::move(mark));
                }
            }
        }
    } else if (stream.kind == Stream::Kind::blocking) {
        Mark mark = null_streams_[static_cast<std::size_t>(stream.device.ordinal())]->queue.last();
        if (!mark.complete()) {
            after.push_back(std::move(mark));
        }
    }
    return after;
}

hipError_t Runtime::enqueue(Stream& stream, Operation operation, std::vector<Mark> after, Mark* done) {
    const std::scoped_lock lock(mutex_);
    if (stream.capture != nullptr) {
        if (stream.capture->invalidated) {
            return hipErrorStreamCaptureInvalidated;
        }
        Node* const node =
            stream.capture->graph->add(stream.device, std::move(operation), std::move(stream.frontier));
        stream.frontier = {node};
        return hipSuccess;
    }
    if (implicit_capture(stream, true)) {
        return hipErrorStreamCaptureImplicit;
    }
    if (const hipError_t fault = stream.device.fault(); fault != hipSuccess) {
        return fault;
    }
    for (Mark& mark : order_of(stream)) {
        after.push_back(std::move(mark));
    }
    Mark mark = stream.queue.submit(
        [this, device = &stream.device, work = std::move(operation)] { perform(work, *device, allocations); },
        std::move(after));
    if (done != nullptr) {
        *done = std::move(mark);
    }
    return hipSuccess;
}

hipError_t Runtime::enqueue_and_wait(Stream& stream, Operation operation) {
    Mark done;
    if (const hipError_t error = enqueue(stream, std::move(operation), {}, &done); error != hipSuccess) {
        return error;
    }
    done.wait();
    return stream.device.fault();
}

hipError_t Runtime::synchronize(Stream& stream) {
    std::vector<Mark> marks;
    {
        const std::scoped_lock lock(mutex_);
        if (const hipError_t error = check_capture(stream); error != hipSuccess) {
            return error;
        }
        // The null stream is done when the streams that it would wait for are.
        if (stream.kind == Stream::Kind::null) {
            marks = order_of(stream);
        }
        marks.push_back(stream.queue.last());
    }
    for (const Mark& mark : marks) {
        mark.wait();
    }
    return stream.device.fault();
}

hipError_t Runtime::query(Stream& stream) {
    const std::scoped_lock lock(mutex_);
    if (const hipError_t error = check_capture(stream); error != hipSuccess) {
        return error;
    }
    const bool waits = stream.kind == Stream::Kind::null && !order_of(stream).empty();
    if (waits || !stream.queue.last().complete()) {
        return hipErrorNotReady;
    }
    return stream.device.fault();
}

hipError_t Runtime::synchronize(SimDevice& device) {
    if (const hipError_t error = allowed_in_capture(); error != hipSuccess) {
        return error;
    }
    std::vector<Mark> marks;
    {
        const std::scoped_lock lock(mutex_);
        for (const auto& stream : all_streams_) {
            if (&stream->device == &device) {
                marks.push_back(stream->queue.last());
            }
        }
    }
    for (const Mark& mark : marks) {
        mark.wait();
    }
    return device.fault();
}

}  // namespace kiln::sim::hip
