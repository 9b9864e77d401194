// Streams and events. Their capture state is protected by Runtime's mutex.
#pragma once

#include <memory>
#include <vector>

#include "runtime/sim/hip/graph.hpp"
#include "runtime/sim/hip/work.hpp"

namespace kiln::sim::hip {

struct Stream {
    enum class Kind {
        null,  // waits for every blocking stream of the device, and they for it
        blocking,
        non_blocking,
    };

    Stream(SimDevice& its_device, Kind its_kind, int its_priority = 0)
        : device(its_device), kind(its_kind), priority(its_priority) {}

    // Constant after construction.
    SimDevice& device;
    const Kind kind;
    const int priority;

    WorkQueue queue;

    // Protected by Runtime's mutex.
    std::shared_ptr<Capture> capture;  // null: work runs
    std::vector<Node*> frontier;       // what the next recorded node depends on
};

struct Event {
    Event(SimDevice& its_device, unsigned its_flags) : device(its_device), flags(its_flags) {}

    SimDevice& device;
    const unsigned flags;

    // Of the last recording; protected by Runtime's mutex. Neither when there was none, never both.
    struct Recording {
        Mark mark;
        std::shared_ptr<Stamp> stamp;
    };
    std::shared_ptr<const Recording> recording;
    std::shared_ptr<Capture> capture;
    std::vector<Node*> frontier;
};

}  // namespace kiln::sim::hip
