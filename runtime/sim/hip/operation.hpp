// What a stream does, one step at a time: kernels, copies, fills. The same values run at once or wait in a
// graph.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "base/bytes.hpp"
#include "runtime/sim/hip/sim_device.hpp"

namespace kiln::sim::hip {

class Allocations;
class LoadedModule;

struct RunKernel {
    std::shared_ptr<const LoadedModule> module;  // keeps the kernel's code alive
    const Kernel* kernel = nullptr;
    device::Dim3 grid;
    device::Dim3 block;
    std::uint32_t dynamic_lds_bytes = 0;
    Bytes kernargs;
};

// Sides that lie in an allocation when the copy is asked for must still do so when it runs.
struct CopyBytes {
    void* to = nullptr;
    const void* from = nullptr;
    std::size_t bytes = 0;
    bool to_allocation = false;
    bool from_allocation = false;
};

struct FillMemory {
    void* to = nullptr;
    std::uint32_t value = 0;
    unsigned element_bytes = 1;  // 1, 2 or 4
    std::size_t count = 0;
};

struct CallHost {
    hipHostFn_t function = nullptr;
    void* data = nullptr;
};

// When one recording of an event was reached.
struct Stamp {
    std::atomic<std::int64_t> nanoseconds = 0;
};
struct TakeStamp {
    std::shared_ptr<Stamp> stamp;
};

struct FreeMemory {
    void* pointer = nullptr;
};

// Waits for what it was submitted after, and nothing else.
struct Nothing {};

struct GraphPlan;
struct RunGraph {
    std::shared_ptr<const GraphPlan> plan;
};

using Operation =
    std::variant<RunKernel, CopyBytes, FillMemory, CallHost, TakeStamp, FreeMemory, Nothing, RunGraph>;

// The operations of an instantiated graph, each with its device, in an order that respects every dependency.
struct GraphPlan {
    struct Step {
        SimDevice* device = nullptr;
        Operation operation;
    };
    std::vector<Step> steps;
};

// Does it now, on the calling thread. After a fault of the device only time stamps and host functions still
// happen.
void perform(const Operation& operation, SimDevice& device, Allocations& allocations);

[[nodiscard]] hipGraphNodeType node_type(const Operation& operation);

}  // namespace kiln::sim::hip
