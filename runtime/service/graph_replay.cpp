#include "runtime/service/graph_replay.hpp"

namespace kiln::service {

namespace {

// Between begin_capture() and what follows, whatever happens: the capture is ended.
Result<device::Device::Graph> record(device::Device& device, device::Stream stream,
                                     const std::function<Result<void>(device::Stream)>& enqueue) {
    Result<void> enqueued = enqueue(stream);
    Result<device::Device::Graph> graph = device.end_capture(stream);
    if (!enqueued) {
        if (graph) {
            static_cast<void>(device.destroy_graph(*graph));
        }
        return fail(enqueued);
    }
    return graph;
}

Result<bool> replay_on(device::Device& device, device::Stream stream,
                       const std::function<Result<void>(device::Stream)>& enqueue) {
    if (Result<void> begun = device.begin_capture(stream); !begun) {
        // What an entry point that the driver lacks says.
        return begun.error().code == ErrorCode::environment ? Result<bool>(false) : fail(begun);
    }
    const Result<device::Device::Graph> graph = record(device, stream, enqueue);
    if (!graph) {
        return tl::unexpected<Error>(graph.error());
    }
    Result<void> replayed =
        device.replay(*graph, stream).and_then([&] { return device.synchronize(stream); });
    Result<void> destroyed = device.destroy_graph(*graph);
    if (!replayed || !destroyed) {
        return fail(!replayed ? replayed : destroyed);
    }
    return true;
}

}  // namespace

Result<bool> replay_recorded(device::Device& device,
                             const std::function<Result<void>(device::Stream)>& enqueue) {
    const Result<device::Stream> stream = device.create_stream();
    if (!stream) {
        return tl::unexpected<Error>(stream.error());
    }
    Result<bool> replayed = replay_on(device, *stream, enqueue);
    Result<void> destroyed = device.destroy_stream(*stream);
    return !replayed || destroyed ? replayed : fail(destroyed);
}

}  // namespace kiln::service
