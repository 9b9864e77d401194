// Capture and graphs.
#include <algorithm>

#include "runtime/sim/hip/entry.hpp"

using namespace kiln::sim::hip;

namespace {

hipError_t instantiate(hipGraphExec_t* executable, hipGraph_t graph) {
    return enter([&](ThreadState&, Runtime& runtime) {
        const auto found = runtime.graphs.find(graph);
        if (executable == nullptr || found == nullptr) {
            return hipErrorInvalidValue;
        }
        *executable = runtime.executables.insert(found->plan());
        return hipSuccess;
    });
}

// HIP's way to hand out a list: with no place for it, its length; else as many as fit, padded with nulls.
hipError_t hand_out(const std::vector<Node*>& nodes, hipGraphNode_t* list, std::size_t* count) {
    if (count == nullptr) {
        return hipErrorInvalidValue;
    }
    if (list != nullptr) {
        for (std::size_t i = 0; i < *count; ++i) {
            list[i] = i < nodes.size() ? reinterpret_cast<hipGraphNode_t>(nodes[i]) : nullptr;
        }
        *count = std::min(*count, nodes.size());
    } else {
        *count = nodes.size();
    }
    return hipSuccess;
}

template <class Wanted>
hipError_t list_nodes(hipGraph_t graph, hipGraphNode_t* list, std::size_t* count, Wanted wanted) {
    return enter([&](ThreadState&, Runtime& runtime) {
        const auto found = runtime.graphs.find(graph);
        if (found == nullptr) {
            return hipErrorInvalidValue;
        }
        std::vector<Node*> nodes;
        for (const auto& node : found->nodes) {
            if (wanted(*node)) {
                nodes.push_back(node.get());
            }
        }
        return hand_out(nodes, list, count);
    });
}

}  // namespace

KILN_EXPORT hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) {
    return enter_stream(stream, [&](ThreadState&, Runtime& runtime, Stream& found) {
        return runtime.begin_capture(found, mode);
    });
}

KILN_EXPORT hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph) {
    return enter_stream(stream, [&](ThreadState&, Runtime& runtime, Stream& found) {
        if (graph == nullptr) {
            return hipErrorInvalidValue;
        }
        *graph = nullptr;
        std::shared_ptr<Graph> recorded;
        const hipError_t error = runtime.end_capture(found, recorded);
        if (error == hipSuccess) {
            *graph = runtime.graphs.insert(std::move(recorded));
        }
        return error;
    });
}

KILN_EXPORT hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus* status) {
    return enter_stream(stream, [&](ThreadState&, Runtime& runtime, Stream& found) {
        unsigned long long id = 0;
        return status != nullptr ? runtime.capture_status(found, *status, id) : hipErrorInvalidValue;
    });
}

KILN_EXPORT hipError_t hipStreamGetCaptureInfo(hipStream_t stream, hipStreamCaptureStatus* status,
                                               unsigned long long* id) {
    return enter_stream(stream, [&](ThreadState&, Runtime& runtime, Stream& found) {
        if (status == nullptr) {
            return hipErrorInvalidValue;
        }
        unsigned long long number = 0;
        const hipError_t error = runtime.capture_status(found, *status, number);
        if (error == hipSuccess && id != nullptr) {
            *id = number;
        }
        return error;
    });
}

KILN_EXPORT hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode) {
    return enter([&](ThreadState& thread, Runtime&) {
        if (mode == nullptr || *mode > hipStreamCaptureModeRelaxed) {
            return hipErrorInvalidValue;
        }
        std::swap(thread.capture_mode, *mode);
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipGraphInstantiate(hipGraphExec_t* executable, hipGraph_t graph, hipGraphNode_t*,
                                           char*, std::size_t) {
    return instantiate(executable, graph);
}

KILN_EXPORT hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t* executable, hipGraph_t graph,
                                                    unsigned long long) {
    return instantiate(executable, graph);
}

KILN_EXPORT hipError_t hipGraphLaunch(hipGraphExec_t executable, hipStream_t stream) {
    return enter_stream(stream, [&](ThreadState&, Runtime& runtime, Stream& found) {
        auto plan = runtime.executables.find(executable);
        return plan != nullptr ? runtime.enqueue(found, RunGraph{std::move(plan)}) : hipErrorInvalidValue;
    });
}

// Nothing is prepared on the device ahead of a launch.
KILN_EXPORT hipError_t hipGraphUpload(hipGraphExec_t executable, hipStream_t stream) {
    return enter_stream(stream, [&](ThreadState&, Runtime& runtime, Stream&) {
        return runtime.executables.find(executable) != nullptr ? hipSuccess : hipErrorInvalidValue;
    });
}

KILN_EXPORT hipError_t hipGraphDestroy(hipGraph_t graph) {
    return enter([&](ThreadState&, Runtime& runtime) {
        return runtime.graphs.erase(graph) != nullptr ? hipSuccess : hipErrorInvalidValue;
    });
}

KILN_EXPORT hipError_t hipGraphExecDestroy(hipGraphExec_t executable) {
    return enter([&](ThreadState&, Runtime& runtime) {
        return runtime.executables.erase(executable) != nullptr ? hipSuccess : hipErrorInvalidValue;
    });
}

KILN_EXPORT hipError_t hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t* nodes, std::size_t* count) {
    return list_nodes(graph, nodes, count, [](const Node&) { return true; });
}

KILN_EXPORT hipError_t hipGraphGetRootNodes(hipGraph_t graph, hipGraphNode_t* nodes, std::size_t* count) {
    return list_nodes(graph, nodes, count, [](const Node& node) { return node.dependencies.empty(); });
}

// Nodes are the graph's own: a handle is valid while its graph lives, and is not looked up.
KILN_EXPORT hipError_t hipGraphNodeGetType(hipGraphNode_t node, hipGraphNodeType* type) {
    return enter([&](ThreadState&, Runtime&) {
        if (node == nullptr || type == nullptr) {
            return hipErrorInvalidValue;
        }
        *type = node_type(reinterpret_cast<const Node*>(node)->operation);
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipGraphNodeGetDependencies(hipGraphNode_t node, hipGraphNode_t* dependencies,
                                                   std::size_t* count) {
    return enter([&](ThreadState&, Runtime&) {
        return node != nullptr
                   ? hand_out(reinterpret_cast<const Node*>(node)->dependencies, dependencies, count)
                   : hipErrorInvalidValue;
    });
}
