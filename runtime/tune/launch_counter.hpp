// What a launch does on the simulator: exact counts of each of its kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "runtime/device/device.hpp"
#include "runtime/service/plan.hpp"
#include "runtime/service/trial_case.hpp"
#include "runtime/tune/launch_arrays.hpp"

namespace kiln::tune {

// Not thread safe. The device must be simulated, and the calling thread's current one.
class LaunchCounter {
  public:
    [[nodiscard]] static Result<std::unique_ptr<LaunchCounter>> create(
        std::shared_ptr<device::Device> device, std::shared_ptr<const service::TrialCase> arrays);

    // Of one launch of m tokens, in the order of its kernels.
    [[nodiscard]] Result<std::vector<device::ExecutionCounts>> count(const service::Plan& plan,
                                                                     std::int64_t m) const;

  private:
    LaunchCounter(std::shared_ptr<device::Device> device, std::shared_ptr<const service::TrialCase> arrays,
                  Weights weights)
        : device_(std::move(device)), case_(std::move(arrays)), weights_(std::move(weights)) {}

    const std::shared_ptr<device::Device> device_;
    const std::shared_ptr<const service::TrialCase> case_;
    const Weights weights_;
};

}  // namespace kiln::tune
