// Streams, and what waits on them.
#include <algorithm>

#include "runtime/sim/hip/entry.hpp"

using namespace kiln::sim::hip;

namespace {

hipError_t create(hipStream_t* stream, unsigned flags, int priority) {
    return enter([&](ThreadState&, Runtime& runtime) {
        if (stream == nullptr || flags > hipStreamNonBlocking) {
            return hipErrorInvalidValue;
        }
        const auto kind = flags == hipStreamNonBlocking ? Stream::Kind::non_blocking : Stream::Kind::blocking;
        *stream = runtime.streams.insert(
            runtime.create_stream(runtime.current(), kind, std::clamp(priority, -1, 1)));
        return hipSuccess;
    });
}

}  // namespace

KILN_EXPORT hipError_t hipStreamCreate(hipStream_t* stream) {
    return create(stream, hipStreamDefault, 0);
}

KILN_EXPORT hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags) {
    return create(stream, flags, 0);
}

KILN_EXPORT hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned flags, int priority) {
    return create(stream, flags, priority);
}

KILN_EXPORT hipError_t hipStreamDestroy(hipStream_t stream) {
    return enter([&](ThreadState&, Runtime& runtime) {
        const auto found = runtime.streams.erase(stream);
        if (found == nullptr) {  // the null stream too: it is nobody's to destroy
            return hipErrorInvalidHandle;
        }
        runtime.retire(found);
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipStreamSynchronize(hipStream_t stream) {
    return enter_stream(
        stream, [&](ThreadState&, Runtime& runtime, Stream& found) { return runtime.synchronize(found); });
}

KILN_EXPORT hipError_t hipStreamQuery(hipStream_t stream) {
    return enter_stream(stream,
                        [&](ThreadState&, Runtime& runtime, Stream& found) { return runtime.query(found); });
}

KILN_EXPORT hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned) {
    return enter_stream(stream, [&](ThreadState&, Runtime& runtime, Stream& found) {
        const auto awaited = runtime.events.find(event);
        return awaited != nullptr ? runtime.wait_event(found, *awaited) : hipErrorInvalidHandle;
    });
}

KILN_EXPORT hipError_t hipStreamGetFlags(hipStream_t stream, unsigned* flags) {
    return enter_stream(stream, [&](ThreadState&, Runtime&, Stream& found) {
        if (flags == nullptr) {
            return hipErrorInvalidValue;
        }
        *flags = found.kind == Stream::Kind::non_blocking ? hipStreamNonBlocking : hipStreamDefault;
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipStreamGetPriority(hipStream_t stream, int* priority) {
    return enter_stream(stream, [&](ThreadState&, Runtime&, Stream& found) {
        if (priority == nullptr) {
            return hipErrorInvalidValue;
        }
        *priority = found.priority;
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t* device) {
    return enter_stream(stream, [&](ThreadState&, Runtime&, Stream& found) {
        if (device == nullptr) {
            return hipErrorInvalidValue;
        }
        *device = found.device.ordinal();
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t function, void* data) {
    return enter_stream(stream, [&](ThreadState&, Runtime& runtime, Stream& found) {
        return function != nullptr ? runtime.enqueue(found, CallHost{function, data}) : hipErrorInvalidValue;
    });
}
