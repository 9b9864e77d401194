// Runs one problem at one M on a device and compares with the reference: what `kiln verify` does per case.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "runtime/device/device.hpp"
#include "runtime/service/plan.hpp"

namespace kiln::service {

struct TrialResult {
    std::int64_t m = 0;
    const PlanBucket* bucket = nullptr;  // lives as long as the plan
    double error = 0;                    // in the operator's own measure
    double bound = 0;
    bool passed = false;
    std::string remark;                             // "3 of 81920 differ, by one unit at most"
    std::optional<device::ExecutionCounts> counts;  // on a device that counts
    std::optional<double> microseconds;             // on one that does not
};

// Inputs and reference of one problem, made once for the largest M and shared by all smaller ones. Not thread
// safe.
class Trial {
  public:
    // `max_m` rows of inputs from `seed`; computes the reference (seconds for a large problem).
    [[nodiscard]] static Result<std::unique_ptr<Trial>> create(std::shared_ptr<const Plan> plan,
                                                               std::int64_t max_m, std::uint64_t seed);
    virtual ~Trial() = default;

    // Launches on the null stream, waits, compares; leaves the plan's device the calling thread's current
    // one. An error only when something can not be run at all.
    [[nodiscard]] virtual Result<TrialResult> run(std::int64_t m) = 0;
};

}  // namespace kiln::service
