#include "runtime/sim/hip/runtime.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <optional>
#include <utility>

#include "base/at_exit.hpp"
#include "base/fork_guard.hpp"
#include "base/log.hpp"

namespace kiln::sim::hip {
namespace {

constexpr int kMaxDevices = 16;
constexpr int kDefaultDevices = 2;
constexpr std::uint64_t kDefaultMemory = 288ULL << 30;

std::mutex configuration_mutex;
// Protected by configuration_mutex. Zero where nothing was said.
kiln_sim_config configuration{};
bool devices_exist = false;

// What configure() said, else the environment, else the defaults.
kiln_sim_config settle() {
    const std::scoped_lock lock(configuration_mutex);
    devices_exist = true;
    kiln_sim_config settled = configuration;
    if (settled.memory_bytes == 0) {
        settled.memory_bytes = kDefaultMemory;
    }
    if (settled.num_devices != 0) {
        return settled;
    }
    settled.num_devices = kDefaultDevices;
    if (const char* const text = variable("KILN_SIM_DEVICES"); text != nullptr) {
        char* end = nullptr;
        const long value = std::strtol(text, &end, 10);
        if (end != text && *end == '\0' && value >= 1 && value <= kMaxDevices) {
            settled.num_devices = static_cast<int>(value);
        } else {
            log::warning("KILN_SIM_DEVICES: expected 1 to {}, found \"{}\"; {} devices it is", kMaxDevices,
                         text, settled.num_devices);
        }
    }
    return settled;
}

}  // namespace

ThreadState::~ThreadState() {
    if (!streams.empty() && Runtime::get().is_of_this_process()) {
        std::erase(streams, nullptr);
        Runtime::get().release(streams);
    }
}

ThreadState& this_thread() {
    // Destructors of static objects may call after those of the thread's own objects have run: then the state
    // is made once more, and nobody takes it down.
    static constinit thread_local ThreadState* state = nullptr;
    struct Owner {
        ~Owner() { delete std::exchange(state, nullptr); }
    };
    if (state == nullptr) [[unlikely]] {
        static thread_local Owner owner;
        static_cast<void>(owner);
        state = new ThreadState;
    }
    return *state;
}

hipError_t Runtime::configure(const kiln_sim_config& config) {
    const std::scoped_lock lock(configuration_mutex);
    if (devices_exist) {
        return hipErrorIllegalState;
    }
    if (config.struct_bytes != sizeof config || config.num_devices < 0 || config.num_devices > kMaxDevices) {
        return hipErrorInvalidValue;
    }
    // What this call leaves open stays as an earlier one said it.
    if (config.num_devices != 0) {
        configuration.num_devices = config.num_devices;
    }
    if (config.memory_bytes != 0) {
        configuration.memory_bytes = config.memory_bytes;
    }
    if (config.threads != 0) {
        configuration.threads = config.threads;
    }
    return hipSuccess;
}

Runtime& Runtime::get() {
    // Never destroyed: threads of the program may call until the very end. Only the work is stopped.
    static Runtime* const runtime = new Runtime(settle());
    static const bool registered = (call_at_exit([] {
                                        // The threads that would be stopped are the parent's, in a process
                                        // that was forked from it.
                                        if (runtime->is_of_this_process()) {
                                            runtime->stop();
                                        }
                                    }),
                                    true);
    static_cast<void>(registered);
    return *runtime;
}

Runtime::Runtime(const kiln_sim_config& config) : generation_((watch_forks(), fork_generation())) {
    const Rules rules = environment_rules();
    for (int ordinal = 0; ordinal < config.num_devices; ++ordinal) {
        devices_.push_back(std::make_unique<SimDevice>(ordinal, config.memory_bytes, config.threads, rules));
        null_streams_.push_back(std::make_shared<Stream>(*devices_.back(), Stream::Kind::null));
        all_streams_.push_back(null_streams_.back());
    }
}

bool Runtime::is_of_this_process() const {
    return generation_ == fork_generation();
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
    for (const auto& device : devices_) {
        device->stop();
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
    std::vector<std::shared_ptr<Stream>> done;  // destroyed after the lock is released
    const std::scoped_lock lock(mutex_);
    done = take_done();
    all_streams_.push_back(stream);
    return stream;
}

void Runtime::retire(const std::shared_ptr<Stream>& stream) {
    Mark last;
    {
        const std::scoped_lock lock(mutex_);
        break_capture(*stream);
        std::erase(all_streams_, stream);
        last = stream->queue.last();
    }
    last.wait();
}

void Runtime::release(const std::vector<std::shared_ptr<Stream>>& streams_of_thread) {
    std::vector<std::shared_ptr<Stream>> done;  // destroyed after the lock is released
    const std::scoped_lock lock(mutex_);
    for (const auto& stream : streams_of_thread) {
        break_capture(*stream);
        released_.push_back(stream);
    }
    done = take_done();
}

void Runtime::break_capture(const Stream& stream) {
    if (stream.capture == nullptr) {
        return;
    }
    const auto capture = stream.capture;
    capture->invalidated = true;
    std::erase(capture->members, &stream);
    if (capture->origin == &stream) {
        leave_capture(*capture);
    }
}

std::vector<std::shared_ptr<Stream>> Runtime::take_done() {
    std::vector<std::shared_ptr<Stream>> done;
    std::erase_if(released_, [&](const std::shared_ptr<Stream>& stream) {
        const bool complete = stream->queue.last().complete();
        if (complete) {
            std::erase(all_streams_, stream);
            done.push_back(stream);
        }
        return complete;
    });
    return done;
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
        [this, device = &stream.device, work = std::move(operation)] {
            try {
                perform(work, *device, allocations);
            } catch (const std::exception& e) {  // no memory, or a host function's own
                device->fail(hipErrorUnknown, e.what());
            }
        },
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
