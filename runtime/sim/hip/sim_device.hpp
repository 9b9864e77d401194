// One simulated GPU: its memory, its fault and its counts.
#pragma once

#include <atomic>
#include <mutex>
#include <string>

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

    [[nodiscard]] device::ExecutionCounts take_counts();

  private:
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
};

}  // namespace kiln::sim::hip
