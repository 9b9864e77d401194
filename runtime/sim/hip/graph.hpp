// Recorded work: graphs as captures build them, and captures in progress.
#pragma once

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/sim/hip/operation.hpp"

namespace kiln::sim::hip {

struct Stream;

// One recorded operation. Dependencies are nodes of the same graph that were recorded before.
struct Node {
    SimDevice* device = nullptr;
    Operation operation;
    std::vector<Node*> dependencies;
};

// In the order of recording, which respects every dependency. Immutable once its capture has ended.
struct Graph {
    std::vector<std::unique_ptr<Node>> nodes;

    Node* add(SimDevice& device, Operation operation, std::vector<Node*> dependencies);
    // True when every one of `targets` is one of `ends` or something that those depend on.
    [[nodiscard]] bool joined(const std::vector<Node*>& targets, const std::vector<Node*>& ends) const;
    [[nodiscard]] std::shared_ptr<const GraphPlan> plan() const;
};

// A capture in progress; protected by Runtime's mutex.
struct Capture {
    unsigned long long id = 0;
    hipStreamCaptureMode mode = hipStreamCaptureModeGlobal;
    std::thread::id owner;  // the thread that began it
    Stream* origin = nullptr;
    std::vector<Stream*> members;  // origin first
    std::shared_ptr<Graph> graph = std::make_shared<Graph>();
    bool invalidated = false;
};

}  // namespace kiln::sim::hip
