// A GPU behind HIP's runtime library, real or simulated.
#pragma once

#include <memory>

#include "base/error.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/driver/binding.hpp"

namespace kiln::device::hip {

// `library` is one of this family. The device keeps it, and what the configuration says of a simulator's
// listings.
[[nodiscard]] Result<std::shared_ptr<Device>> open_device(driver::LibraryPointer library, int ordinal,
                                                          const DriverConfig& config);

}  // namespace kiln::device::hip
