// Events and stream capture: who depends on whom, and what a capture forbids.
#include <algorithm>
#include <utility>

#include "runtime/sim/hip/runtime.hpp"

namespace kiln::sim::hip {
namespace {

bool contains(const std::vector<Node*>& nodes, const Node* node) {
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

// A capture that has ended says nothing about an event any more.
std::shared_ptr<Capture> active_capture(Event& event) {
    if (event.capture != nullptr && event.capture->origin == nullptr) {
        event.capture = nullptr;
        event.frontier.clear();
    }
    return event.capture;
}

}  // namespace

// Waiting for a stream that captures, or asking how far it is, breaks the capture.
hipError_t Runtime::check_capture(Stream& stream) {
    if (stream.capture != nullptr) {
        stream.capture->invalidated = true;
        return hipErrorStreamCaptureUnsupported;
    }
    return implicit_capture(stream, true) ? hipErrorStreamCaptureImplicit : hipSuccess;
}

// True for the null stream of a device on which a stream captures that would have to wait for it.
bool Runtime::implicit_capture(const Stream& stream, bool break_it) {
    if (stream.kind != Stream::Kind::null) {
        return false;
    }
    bool found = false;
    for (const auto& capture : captures_) {
        for (const Stream* member : capture->members) {
            if (&member->device == &stream.device && member->kind == Stream::Kind::blocking) {
                capture->invalidated = capture->invalidated || break_it;
                found = true;
            }
        }
    }
    return found;
}

hipError_t Runtime::record(Event& event, Stream& stream) {
    if (&event.device != &stream.device) {
        return hipErrorInvalidHandle;
    }
    {
        const std::scoped_lock lock(mutex_);
        if (stream.capture != nullptr) {
            if (stream.capture->invalidated) {
                return hipErrorStreamCaptureInvalidated;
            }
            event.recording = nullptr;
            event.capture = stream.capture;
            event.frontier = stream.frontier;
            return hipSuccess;
        }
    }
    Event::Recording made{{}, std::make_shared<Stamp>()};
    if (const hipError_t error = enqueue(stream, TakeStamp{made.stamp}, {}, &made.mark);
        error != hipSuccess) {
        return error;
    }
    const std::scoped_lock lock(mutex_);
    event.recording = std::make_shared<const Event::Recording>(std::move(made));
    event.capture = nullptr;
    event.frontier.clear();
    return hipSuccess;
}

hipError_t Runtime::wait_event(Stream& stream, Event& event) {
    Mark mark;
    {
        const std::scoped_lock lock(mutex_);
        const auto captured = active_capture(event);
        if (captured == nullptr && stream.capture == nullptr) {
            if (event.recording == nullptr) {
                return hipSuccess;
            }
            mark = event.recording->mark;
        } else if (captured == nullptr) {
            if (event.recording == nullptr) {
                return hipSuccess;
            }
            stream.capture->invalidated = true;
            return hipErrorStreamCaptureIsolation;
        } else if (captured->invalidated) {
            return hipErrorStreamCaptureInvalidated;
        } else if (stream.capture != nullptr && stream.capture != captured) {
            stream.capture->invalidated = captured->invalidated = true;
            return hipErrorStreamCaptureMerge;
        } else if (stream.kind == Stream::Kind::null) {
            captured->invalidated = true;
            return hipErrorStreamCaptureImplicit;
        } else {
            if (stream.capture == nullptr) {  // the fork: this stream takes part from now on
                stream.capture = captured;
                stream.frontier.clear();
                captured->members.push_back(&stream);
            }
            for (Node* const node : event.frontier) {
                if (!contains(stream.frontier, node)) {
                    stream.frontier.push_back(node);
                }
            }
            return hipSuccess;
        }
    }
    return enqueue(stream, Nothing{}, {std::move(mark)});
}

hipError_t Runtime::recording(Event& event, std::shared_ptr<const Event::Recording>& result) {
    const std::scoped_lock lock(mutex_);
    if (const auto captured = active_capture(event); captured != nullptr) {
        captured->invalidated = true;
        return hipErrorCapturedEvent;
    }
    result = event.recording;
    return hipSuccess;
}

// A thread in relaxed mode may do anything; one in thread-local mode minds its own captures, and by default
// those of other threads too, where they were begun in global mode. A capture begun in relaxed mode forbids
// nothing.
hipError_t Runtime::allowed_in_capture() {
    const auto mode = this_thread().capture_mode;
    if (mode == hipStreamCaptureModeRelaxed) {
        return hipSuccess;
    }
    const auto self = std::this_thread::get_id();
    bool allowed = true;
    const std::scoped_lock lock(mutex_);
    for (const auto& capture : captures_) {
        const bool own = capture->owner == self && capture->mode != hipStreamCaptureModeRelaxed;
        const bool global = mode == hipStreamCaptureModeGlobal && capture->mode == hipStreamCaptureModeGlobal;
        if (own || global) {
            capture->invalidated = true;
            allowed = false;
        }
    }
    return allowed ? hipSuccess : hipErrorStreamCaptureUnsupported;
}

hipError_t Runtime::begin_capture(Stream& stream, hipStreamCaptureMode mode) {
    if (mode > hipStreamCaptureModeRelaxed) {
        return hipErrorInvalidValue;
    }
    if (stream.kind == Stream::Kind::null) {
        return hipErrorStreamCaptureUnsupported;
    }
    const std::scoped_lock lock(mutex_);
    if (stream.capture != nullptr) {
        return hipErrorIllegalState;
    }
    auto capture = std::make_shared<Capture>();
    capture->id = ++last_capture_id_;
    capture->mode = mode;
    capture->owner = std::this_thread::get_id();
    capture->origin = &stream;
    capture->members = {&stream};
    stream.frontier.clear();
    stream.capture = capture;
    captures_.push_back(std::move(capture));
    return hipSuccess;
}

// Every member runs its work again; the capture is over.
void Runtime::leave_capture(Capture& capture) {
    for (Stream* const member : capture.members) {
        member->frontier.clear();
    }
    const auto members = std::exchange(capture.members, {});
    capture.origin = nullptr;
    std::erase_if(captures_, [&](const auto& other) { return other.get() == &capture; });
    for (Stream* const member : members) {
        member->capture = nullptr;  // last: it may own the capture
    }
}

hipError_t Runtime::end_capture(Stream& stream, std::shared_ptr<Graph>& graph) {
    const std::scoped_lock lock(mutex_);
    const auto capture = stream.capture;
    if (capture == nullptr) {
        return hipErrorIllegalState;
    }
    if (capture->mode != hipStreamCaptureModeRelaxed && capture->owner != std::this_thread::get_id()) {
        return hipErrorStreamCaptureWrongThread;
    }
    if (capture->origin != &stream) {
        capture->invalidated = true;
        return hipErrorStreamCaptureUnmatched;
    }
    hipError_t error = capture->invalidated ? hipErrorStreamCaptureInvalidated : hipSuccess;
    for (const Stream* member : capture->members) {
        if (error == hipSuccess && !capture->graph->joined(member->frontier, stream.frontier)) {
            error = hipErrorStreamCaptureUnjoined;
        }
    }
    if (error == hipSuccess) {
        graph = capture->graph;
    }
    leave_capture(*capture);
    return error;
}

hipError_t Runtime::capture_status(Stream& stream, hipStreamCaptureStatus& status, unsigned long long& id) {
    const std::scoped_lock lock(mutex_);
    status = hipStreamCaptureStatusNone;
    if (implicit_capture(stream, false)) {
        return hipErrorStreamCaptureImplicit;
    }
    if (stream.capture != nullptr) {
        status =
            stream.capture->invalidated ? hipStreamCaptureStatusInvalidated : hipStreamCaptureStatusActive;
        id = stream.capture->id;
    }
    return hipSuccess;
}

}  // namespace kiln::sim::hip
