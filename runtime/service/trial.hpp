// Runs one problem at one M on a device and compares with the reference: what `kiln verify` does per case.
//
// A case is launched several times, and all results must be the same bits, or, where the bucket's template is
// not deterministic, right each time:
//  1. Into arrays that are exactly as large as M makes them, so that a checker of memory (the simulator,
//     compute-sanitizer) sees an access beyond. The results are full of NaN before, so that what a launch
//     leaves out shows. This one is compared with the reference, and counted on a device that counts.
//  2. On a device that does not count, again and again for the time of the quickest.
//  3. From a graph, on another stream, where the driver captures: rows of NaN follow those of the case, and
//     the results lie between canaries that must live.
//  4. On a simulated device, where rules are given: once under each of them, as 1.
// A workspace is initialised before the first of them only, and its counters must be zero after each; its
// scratch holds what was there (on a simulated device nothing was ever written to it), and NaN before 3 and
// before each launch of 4.
//
// A kernel that does not keep to its budget (budget.hpp) fails the case too.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/device/device.hpp"
#include "runtime/service/device_array.hpp"
#include "runtime/service/plan.hpp"
#include "runtime/service/trial_case.hpp"

namespace kiln::service {

struct TrialResult {
    std::int64_t m = 0;
    const PlanBucket* bucket = nullptr;  // lives as long as the plan
    double error = 0;                    // in the operator's own measure
    double bound = 0;
    bool passed = false;
    bool replayed = false;                          // 3. was done
    std::string remark;                             // "3 of 81920 differ"; why it did not pass
    std::optional<device::ExecutionCounts> counts;  // on a device that counts
    std::vector<device::ExecutionCounts> launches;  // the same of each kernel
    std::optional<double> microseconds;             // on one that does not
};

// One problem, its inputs and reference made once for the largest M and shared by all smaller ones. Not
// thread safe.
class Trial {
  public:
    // `max_m` tokens of inputs from `seed`; computes the reference (seconds for a large problem).
    [[nodiscard]] static Result<std::unique_ptr<Trial>> create(std::shared_ptr<const Plan> plan,
                                                               std::int64_t max_m, std::uint64_t seed);
    // Of any case, which several may share, one after the other.
    [[nodiscard]] static Result<std::unique_ptr<Trial>> create(std::shared_ptr<const Plan> plan,
                                                               std::shared_ptr<const TrialCase> arrays);

    // Launches on the null stream, waits, compares; leaves the plan's device the calling thread's current
    // one. An error only when something can not be run at all, a rule of the simulator that a launch broke
    // included. Under `rules` (4.) the device must be simulated; afterwards the first of them hold.
    [[nodiscard]] Result<TrialResult> run(std::int64_t m,
                                          std::span<const device::SimulationRules> rules = {});

  private:
    Trial(std::shared_ptr<const Plan> plan, std::shared_ptr<const TrialCase> arrays,
          std::vector<DeviceArray> weights)
        : plan_(std::move(plan)), case_(std::move(arrays)), weights_(std::move(weights)) {}

    const std::shared_ptr<const Plan> plan_;
    const std::shared_ptr<const TrialCase> case_;
    const std::vector<DeviceArray> weights_;
};

// Inputs and reference of a problem, as Trial::create() makes them.
[[nodiscard]] std::unique_ptr<TrialCase> make_case(const operators::TypedProblem& problem, std::int64_t max_m,
                                                   std::uint64_t seed);
// The same for timing a launch, where what it takes goes by more than the sizes: inputs as a model's step has
// them, in place of those that reach into every corner. Null where the values make no difference.
[[nodiscard]] std::unique_ptr<TrialCase> make_typical_case(const operators::TypedProblem& problem,
                                                           std::int64_t max_m, std::uint64_t seed);
// One of a case's weights in the device's memory, as far as it is given.
[[nodiscard]] Result<DeviceArray> load_weights(const std::shared_ptr<device::Device>& device,
                                               const TrialInput& input);

// Every order of work-groups at both extremes of visibility, with every check: what a kernel must hold under.
// The first is the plainest.
[[nodiscard]] std::vector<device::SimulationRules> all_rules(std::uint64_t seed);

}  // namespace kiln::service
