#include "runtime/sim/hip/operation.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "runtime/sim/hip/allocations.hpp"

namespace kiln::sim::hip {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
    using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

template <class T>
void fill(void* to, std::uint32_t value, std::size_t count) {
    std::fill_n(static_cast<T*>(to), count, static_cast<T>(value));
}

void fill(const FillMemory& step) {
    switch (step.element_bytes) {
        case 1:
            return fill<std::uint8_t>(step.to, step.value, step.count);
        case 2:
            return fill<std::uint16_t>(step.to, step.value, step.count);
        default:
            return fill<std::uint32_t>(step.to, step.value, step.count);
    }
}

// The memory of the device that the bytes are on; null when they are the host's.
Memory* memory_of(const Allocations& allocations, const void* pointer, bool in_allocation) {
    const auto allocation = in_allocation ? allocations.find(pointer) : std::nullopt;
    return allocation ? allocation->memory : nullptr;
}

void copy(const CopyBytes& step, const Allocations& allocations) {
    std::memmove(step.to, step.from, step.bytes);
    if (Memory* const target = memory_of(allocations, step.to, step.to_allocation)) {
        target->note_copied(step.to, memory_of(allocations, step.from, step.from_allocation), step.from,
                            step.bytes);
    }
}

}  // namespace

void perform(const Operation& operation, SimDevice& device, Allocations& allocations) {
    const bool works = device.fault() == hipSuccess;
    const auto holds = [&](const void* pointer, std::size_t bytes) {
        if (allocations.extent(pointer, bytes) == Allocations::Extent::inside) {
            return true;
        }
        device.fail(
            hipErrorIllegalAddress,
            fmt::format("copy or fill: {} bytes at {} are in no allocation any more", bytes, pointer));
        return false;
    };
    std::visit(
        Overloaded{
            [&](const RunKernel& step) {
                if (works) {
                    device.run({step.kernel, step.grid, step.block, step.dynamic_lds_bytes, step.kernargs});
                }
            },
            [&](const CopyBytes& step) {
                if (works && (!step.to_allocation || holds(step.to, step.bytes)) &&
                    (!step.from_allocation || holds(step.from, step.bytes))) {
                    copy(step, allocations);
                }
            },
            [&](const FillMemory& step) {
                if (works && holds(step.to, step.count * step.element_bytes)) {
                    fill(step);
                    if (Memory* const memory = memory_of(allocations, step.to, true)) {
                        memory->note_written(step.to, step.count * step.element_bytes);
                    }
                }
            },
            [&](const CallHost& step) { step.function(step.data); },
            [&](const TakeStamp& step) {
                step.stamp->nanoseconds = std::chrono::steady_clock::now().time_since_epoch().count();
            },
            [&](const FreeMemory& step) {
                allocations.erase(step.pointer);
                static_cast<void>(device.memory().free(step.pointer));  // it was checked when asked for
            },
            [&](const Nothing&) {},
            [&](const RunGraph& step) {
                for (const auto& inner : step.plan->steps) {
                    perform(inner.operation, *inner.device, allocations);
                }
            },
        },
        operation);
}

hipGraphNodeType node_type(const Operation& operation) {
    return std::visit(Overloaded{
                          [](const RunKernel&) { return hipGraphNodeTypeKernel; },
                          [](const CopyBytes&) { return hipGraphNodeTypeMemcpy; },
                          [](const FillMemory&) { return hipGraphNodeTypeMemset; },
                          [](const CallHost&) { return hipGraphNodeTypeHost; },
                          [](const RunGraph&) { return hipGraphNodeTypeGraph; },
                          [](const auto&) { return hipGraphNodeTypeEmpty; },
                      },
                      operation);
}

}  // namespace kiln::sim::hip
