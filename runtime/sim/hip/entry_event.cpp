// Events.
#include "runtime/sim/hip/entry.hpp"

using namespace kiln::sim::hip;

namespace {

// Runs `body(runtime, event)` with the event behind a handle.
template <class Body>
hipError_t enter_event(hipEvent_t handle, Body&& body) noexcept {
    return enter([&](ThreadState&, Runtime& runtime) {
        const auto event = runtime.events.find(handle);
        return event != nullptr ? body(runtime, *event) : hipErrorInvalidHandle;
    });
}

using RecordingPtr = std::shared_ptr<const Event::Recording>;

}  // namespace

KILN_EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags) {
    return enter([&](ThreadState&, Runtime& runtime) {
        if (event == nullptr) {
            return hipErrorInvalidValue;
        }
        *event = runtime.events.insert(std::make_shared<Event>(runtime.current(), flags));
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipEventCreate(hipEvent_t* event) {
    return hipEventCreateWithFlags(event, hipEventDefault);
}

KILN_EXPORT hipError_t hipEventDestroy(hipEvent_t event) {
    return enter([&](ThreadState&, Runtime& runtime) {
        return runtime.events.erase(event) != nullptr ? hipSuccess : hipErrorInvalidHandle;
    });
}

KILN_EXPORT hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
    return enter_event(event, [&](Runtime& runtime, Event& found) {
        const auto on = runtime.stream(stream);
        return on != nullptr ? runtime.record(found, *on) : hipErrorContextIsDestroyed;
    });
}

KILN_EXPORT hipError_t hipEventQuery(hipEvent_t event) {
    return enter_event(event, [&](Runtime& runtime, Event& found) {
        RecordingPtr recording;
        if (const hipError_t error = runtime.recording(found, recording); error != hipSuccess) {
            return error;
        }
        if (recording != nullptr && !recording->mark.complete()) {
            return hipErrorNotReady;
        }
        return found.device.fault();
    });
}

KILN_EXPORT hipError_t hipEventSynchronize(hipEvent_t event) {
    return enter_event(event, [&](Runtime& runtime, Event& found) {
        RecordingPtr recording;
        if (const hipError_t error = runtime.recording(found, recording); error != hipSuccess) {
            return error;
        }
        if (recording != nullptr) {
            recording->mark.wait();
        }
        return found.device.fault();
    });
}

KILN_EXPORT hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop) {
    return enter([&](ThreadState&, Runtime& runtime) {
        if (milliseconds == nullptr) {
            return hipErrorInvalidValue;
        }
        RecordingPtr ends[2];
        const hipEvent_t handles[2] = {start, stop};
        for (int i = 0; i < 2; ++i) {
            const auto event = runtime.events.find(handles[i]);
            if (event == nullptr || (event->flags & hipEventDisableTiming) != 0) {
                return hipErrorInvalidHandle;
            }
            if (const hipError_t error = runtime.recording(*event, ends[i]); error != hipSuccess) {
                return error;
            }
            if (ends[i] == nullptr) {
                return hipErrorInvalidHandle;
            }
            if (!ends[i]->mark.complete()) {
                return hipErrorNotReady;
            }
        }
        *milliseconds = static_cast<float>(ends[1]->stamp->nanoseconds - ends[0]->stamp->nanoseconds) * 1e-6F;
        return hipSuccess;
    });
}
