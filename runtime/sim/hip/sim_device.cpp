#include "runtime/sim/hip/sim_device.hpp"

#include <utility>

#include "runtime/sim/counts.hpp"

namespace kiln::sim::hip {

void SimDevice::run(const Dispatch& dispatch) {
    const Rules now = rules();
    const MachineConfig machine{
        .threads = threads_, .order = now.order, .scopes = now.scopes, .checks = now.checks, .stop = &stop_};
    bool bad_address = false;
    auto counts = sim::run(dispatch, memory_, machine, &bad_address);
    if (!counts) {
        // HIP tells an access to nothing from every other fault.
        fail(bad_address ? hipErrorIllegalAddress : hipErrorLaunchFailure, std::move(counts.error().message));
        return;
    }
    const std::scoped_lock lock(mutex_);
    add(counts_, *counts);
    if (launch_counts_.size() < kMostLaunches) {
        launch_counts_.push_back(*counts);
    }
}

void SimDevice::set_rules(const Rules& rules) {
    const std::scoped_lock lock(mutex_);
    rules_ = rules;
    memory_.set_checks(rules.checks);
}

Rules SimDevice::rules() const {
    const std::scoped_lock lock(mutex_);
    return rules_;
}

void SimDevice::fail(hipError_t error, std::string message) {
    const std::scoped_lock lock(mutex_);
    if (fault_.load(std::memory_order_relaxed) == hipSuccess) {
        fault_message_ = std::move(message);
        fault_.store(error, std::memory_order_release);
    }
}

std::string SimDevice::fault_message() const {
    const std::scoped_lock lock(mutex_);
    return fault_message_;
}

void SimDevice::reset_fault() {
    const std::scoped_lock lock(mutex_);
    fault_message_.clear();
    fault_.store(hipSuccess, std::memory_order_release);
}

device::ExecutionCounts SimDevice::take_counts() {
    const std::scoped_lock lock(mutex_);
    launch_counts_.clear();
    next_launch_ = 0;
    return std::exchange(counts_, {});
}

std::optional<device::ExecutionCounts> SimDevice::next_launch_counts() {
    const std::scoped_lock lock(mutex_);
    return next_launch_ < launch_counts_.size() ? std::optional(launch_counts_[next_launch_++])
                                                : std::nullopt;
}

}  // namespace kiln::sim::hip
