// How long a launch takes on a real GPU, with weights that come from memory.
//
// A graph launches a plan again and again, each time with another copy of the weights, of as many as the last
// cache can not hold: so none of them finds its own there, as in a model, where other layers lie between. The
// activations are the same ones throughout, and warm.
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

// Not thread safe. The device must be the calling thread's current one.
class ReplayTimer {
  public:
    [[nodiscard]] static Result<std::unique_ptr<ReplayTimer>> create(
        std::shared_ptr<device::Device> device, std::shared_ptr<const service::TrialCase> arrays);

    // Microseconds of one launch of m tokens, for each of `iters` replays after `warmup` of them. environment
    // where the driver can not capture.
    [[nodiscard]] Result<std::vector<double>> time(const service::Plan& plan, std::int64_t m,
                                                   std::int64_t warmup, std::int64_t iters) const;

  private:
    ReplayTimer(std::shared_ptr<device::Device> device, std::shared_ptr<const service::TrialCase> arrays,
                std::vector<Weights> copies)
        : device_(std::move(device)), case_(std::move(arrays)), copies_(std::move(copies)) {}

    const std::shared_ptr<device::Device> device_;
    const std::shared_ptr<const service::TrialCase> case_;
    const std::vector<Weights> copies_;
};

}  // namespace kiln::tune
