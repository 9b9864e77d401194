// A GPU behind the CUDA driver.
#pragma once

#include <memory>

#include "base/error.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/driver/binding.hpp"

namespace kiln::device::cuda {

// `library` is one of this family. The device keeps it. Its context is made, or shared, at its first use.
[[nodiscard]] Result<std::shared_ptr<Device>> open_device(driver::LibraryPointer library, int ordinal,
                                                          const DriverConfig& config);

}  // namespace kiln::device::cuda
