// What launches of a case read and write, in a device's memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "runtime/device/device.hpp"
#include "runtime/service/device_array.hpp"
#include "runtime/service/plan.hpp"
#include "runtime/service/trial_arrays.hpp"
#include "runtime/service/trial_case.hpp"

namespace kiln::tune {

using Weights = std::vector<service::DeviceArray>;  // of a case, in its order

[[nodiscard]] Result<Weights> load_weights(const std::shared_ptr<device::Device>& device,
                                           const service::TrialCase& arrays);

// All but the weights, for launches of m tokens. Not thread safe.
class LaunchArrays {
  public:
    // With the plan's workspace, initialised.
    [[nodiscard]] static Result<LaunchArrays> create(std::shared_ptr<const service::TrialCase> arrays,
                                                     const service::Plan& plan, std::int64_t m);

    // One launch of that plan. invalid_argument where it declines.
    [[nodiscard]] Result<void> enqueue(const service::Plan& plan, device::Stream stream,
                                       const Weights& weights) const;

  private:
    LaunchArrays(std::shared_ptr<const service::TrialCase> of, std::int64_t m, service::TrialArrays arrays)
        : case_(std::move(of)), m_(m), arrays_(std::move(arrays)) {}

    std::shared_ptr<const service::TrialCase> case_;
    std::int64_t m_;
    service::TrialArrays arrays_;
    std::optional<service::DeviceArray> workspace_;
};

}  // namespace kiln::tune
