// One simulated GPU: its memory, its fault and its counts.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/hip/types.hpp"
#include "runtime/sim/hip/rules.hpp"
#include "runtime/sim/machine.hpp"

namespace kiln::sim::hip {

using namespace kiln::hip;

// Thread safe.
class SimDevice {
  public:
    SimDevice(int ordinal, std::size_t memory_bytes, unsigned threads, const Rules& rules)
        : ordinal_(ordinal), threads_(threads), memory_(memory_bytes, rules.checks), rules_(rules) {}

    [[nodiscard]] int ordinal() const { return ordinal_; }
    [[nodiscard]] Memory& memory() { return memory_; }

    // Runs a kernel to its end. A broken rule becomes the device's fault.
    void run(const Dispatch& dispatch);

    // Of launches that begin from now on.
    void set_rules(const Rules& rules);
    [[nodiscard]] Rules rules() const;

    // For the end of the process: a kernel that runs, or is yet to, fails soon.
    void stop() { stop_.store(true, std::memory_order_relaxed); }

    // The first fault stays until reset: whatever is asked of the device afterwards answers with it.
    void fail(hipError_t error, std::string message);
    [[nodiscard]] hipError_t fault() const { return fault_.load(std::memory_order_acquire); }
    [[nodiscard]] std::string fault_message() const;
    void reset_fault();

    // The sum over the launches since the last call, which forgets those one by one, too.
    [[nodiscard]] device::ExecutionCounts take_counts();
    // One of those launches after the other, the first kMostLaunches of them.
    [[nodiscard]] std::optional<device::ExecutionCounts> next_launch_counts();

  private:
    static constexpr std::size_t kMostLaunches = 64;

    // Constant after construction.
    const int ordinal_;
    const unsigned threads_;

    std::atomic<bool> stop_ = false;
    Memory memory_;
    std::atomic<hipError_t> fault_ = hipSuccess;
    mutable std::mutex mutex_;
    Rules rules_;                     // protected by mutex_
    std::string fault_message_;       // protected by mutex_
    device::ExecutionCounts counts_;  // protected by mutex_
    // Protected by mutex_: of single launches, and how many of them were asked for.
    std::vector<device::ExecutionCounts> launch_counts_;
    std::size_t next_launch_ = 0;
};

}  // namespace kiln::sim::hip
