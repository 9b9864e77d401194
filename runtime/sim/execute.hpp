// Runs the waves of one work-group.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "runtime/sim/wave.hpp"

namespace kiln::sim {

// When a work-group need not go on: the whole run is to stop, or a work-group before it broke a rule.
struct StopSign {
    const std::atomic<bool>* stop = nullptr;          // null: never
    const std::atomic<std::uint64_t>* end = nullptr;  // the first work-group that is not wanted; null: none
    std::uint64_t group = 0;

    [[nodiscard]] bool operator()() const {
        return (stop != nullptr && stop->load(std::memory_order_relaxed)) ||
               (end != nullptr && group >= end->load(std::memory_order_relaxed));
    }
};

struct RunError : Error {
    bool bad_address = false;  // an access outside every allocation
};

// Until every wave has ended, or the sign says stop, which is a failure. The waves take turns in order, each
// until it ends, reaches a barrier or has had its share, so that the order of execution depends on nothing
// but the program. Waves that ended count as arrived at barriers. device_failed when a rule is broken;
// `kernel` is for its message.
[[nodiscard]] tl::expected<void, RunError> run_group(std::span<Wave> waves, std::string_view kernel,
                                                     const StopSign& stop = {});

}  // namespace kiln::sim
