// What the cost model wants to know of a launch that was counted.
#pragma once

#include <span>
#include <vector>

#include "runtime/device/device.hpp"
#include "runtime/service/plan.hpp"
#include "runtime/service/service.hpp"
#include "runtime/tune/cost_model.hpp"

namespace kiln::tune {

// One for each kernel of a launch of the bucket, with its counts, which come in the order of the launch.
// internal where there are not as many.
[[nodiscard]] Result<std::vector<KernelWork>> kernel_work(service::Service& service,
                                                          const service::PlanBucket& bucket,
                                                          std::span<const device::ExecutionCounts> launches);

}  // namespace kiln::tune
