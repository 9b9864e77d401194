// What a simulated device says of itself: the public figures of an MI355X, as its HIP reports them.
#pragma once

#include <optional>

#include "runtime/device/hip/device_prop.hpp"
#include "runtime/sim/hip/sim_device.hpp"

namespace kiln::sim::hip {

[[nodiscard]] hipDeviceProp_t properties_of(SimDevice& device);

// By the value of hipDeviceAttribute_t; nothing for one that the simulator does not know.
[[nodiscard]] std::optional<int> attribute_of(SimDevice& device, int attribute);

}  // namespace kiln::sim::hip
