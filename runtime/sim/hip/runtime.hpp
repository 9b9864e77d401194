// Everything the look-alike holds in one process: devices, streams, events, modules, graphs, captures.
//
// Lock order: Runtime's mutex, then a queue's, then any other. Nothing waits for work while it holds
// Runtime's mutex.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/device/hip/sim_abi.h"
#include "runtime/sim/hip/allocations.hpp"
#include "runtime/sim/hip/handles.hpp"
#include "runtime/sim/hip/listing_source.hpp"
#include "runtime/sim/hip/sim_device.hpp"
#include "runtime/sim/hip/stream.hpp"

namespace kiln::sim::hip {

class LoadedModule;
struct LoadedFunction;

// What HIP keeps per thread.
struct ThreadState {
    ThreadState() = default;
    ~ThreadState();
    ThreadState(const ThreadState&) = delete;
    ThreadState& operator=(const ThreadState&) = delete;

    int device = 0;
    hipStreamCaptureMode capture_mode = hipStreamCaptureModeGlobal;
    hipError_t last_error = hipSuccess;            // of the last call that failed
    hipError_t last_command = hipSuccess;          // of the last call
    std::string detail;                            // of the call in progress
    std::string message;                           // of the last call that failed
    std::string fault;                             // what kiln_sim_last_fault handed out
    std::vector<std::shared_ptr<Stream>> streams;  // hipStreamPerThread, by device
    std::vector<ListingPlaces> places;             // kiln_sim_push_places, innermost last
};
ThreadState& this_thread();

class Runtime {
  public:
    // Made at the first call, with what configure() or the environment said. Lives until the process ends.
    static Runtime& get();
    static hipError_t configure(const kiln_sim_config& config);
    // False in a child that was forked from the process that made it: its threads are not there.
    [[nodiscard]] bool is_of_this_process() const;

    [[nodiscard]] int num_devices() const { return static_cast<int>(devices_.size()); }
    [[nodiscard]] bool valid(int device) const { return device >= 0 && device < num_devices(); }
    [[nodiscard]] SimDevice& device(int ordinal) { return *devices_[static_cast<std::size_t>(ordinal)]; }
    [[nodiscard]] SimDevice& current() { return device(this_thread().device); }

    // The stream behind a handle: null, hipStreamLegacy and hipStreamPerThread are those of the thread's
    // current device. Null when there is no such stream.
    [[nodiscard]] std::shared_ptr<Stream> stream(hipStream_t handle);
    std::shared_ptr<Stream> create_stream(SimDevice& device, Stream::Kind kind, int priority);
    // Waits for its work; a capture that it takes part in is broken.
    void retire(const std::shared_ptr<Stream>& stream);
    // The same for a thread that ends and must not wait: each goes once its work is done, with a later call.
    void release(const std::vector<std::shared_ptr<Stream>>& streams);

    // Does work on a stream, or records it where the stream captures. `done` tells where it stands in the
    // queue; it stays empty for what was recorded.
    [[nodiscard]] hipError_t enqueue(Stream& stream, Operation operation, std::vector<Mark> after = {},
                                     Mark* done = nullptr);
    // enqueue(), then waits until it is done; answers with the device's fault where it has one.
    [[nodiscard]] hipError_t enqueue_and_wait(Stream& stream, Operation operation);
    [[nodiscard]] hipError_t synchronize(Stream& stream);
    // hipSuccess or hipErrorNotReady.
    [[nodiscard]] hipError_t query(Stream& stream);
    [[nodiscard]] hipError_t synchronize(SimDevice& device);

    [[nodiscard]] hipError_t record(Event& event, Stream& stream);
    [[nodiscard]] hipError_t wait_event(Stream& stream, Event& event);
    // Its last recording; hipErrorCapturedEvent (and the capture is broken) when that was in a capture.
    [[nodiscard]] hipError_t recording(Event& event, std::shared_ptr<const Event::Recording>& result);

    // For calls that a capture in progress forbids (allocating, loading, waiting for a device): hipSuccess,
    // or hipErrorStreamCaptureUnsupported, and the captures that forbid it are broken.
    [[nodiscard]] hipError_t allowed_in_capture();
    [[nodiscard]] hipError_t begin_capture(Stream& stream, hipStreamCaptureMode mode);
    [[nodiscard]] hipError_t end_capture(Stream& stream, std::shared_ptr<Graph>& graph);
    [[nodiscard]] hipError_t capture_status(Stream& stream, hipStreamCaptureStatus& status,
                                            unsigned long long& id);

    Allocations allocations;
    Handles<hipStream_t, Stream> streams;
    Handles<hipEvent_t, Event> events;
    Handles<hipModule_t, LoadedModule> modules;
    Handles<hipFunction_t, const LoadedFunction> functions;
    Handles<hipGraph_t, Graph> graphs;
    Handles<hipGraphExec_t, const GraphPlan> executables;

  private:
    explicit Runtime(const kiln_sim_config& config);
    void stop();

    // All of these hold mutex_.
    [[nodiscard]] hipError_t check_capture(Stream& stream);
    [[nodiscard]] bool implicit_capture(const Stream& stream, bool break_it);
    [[nodiscard]] std::vector<Mark> order_of(const Stream& stream) const;
    void leave_capture(Capture& capture);
    void break_capture(const Stream& stream);
    // Released streams whose work is done, for the caller to destroy when it no longer holds mutex_.
    [[nodiscard]] std::vector<std::shared_ptr<Stream>> take_done();

    const std::uint32_t generation_;                     // of forks
    std::vector<std::unique_ptr<SimDevice>> devices_;    // constant after construction
    std::vector<std::shared_ptr<Stream>> null_streams_;  // by device, constant after construction

    std::mutex mutex_;
    std::vector<std::shared_ptr<Stream>> all_streams_;  // null streams included
    std::vector<std::shared_ptr<Stream>> released_;     // part of all_streams_
    std::vector<std::shared_ptr<Capture>> captures_;
    unsigned long long last_capture_id_ = 0;
};

}  // namespace kiln::sim::hip
