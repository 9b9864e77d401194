// Which vendor's driver a process uses.
//
// A driver that the configuration asks for is bound by the rules of driver/binding.hpp, or it is an error.
// `automatic` takes, in this order:
// clang-format off
//  1. the library that KILN_HIP_LIBRARY or KILN_CUDA_LIBRARY names (or the configuration), HIP's before CUDA's;
//  2. a HIP runtime with a device: the copy that the process holds, else, where the AMD kernel driver is
//     present (/dev/kfd), one that is installed;
//  3. a CUDA driver with a device: likewise, where NVIDIA's kernel driver is present (/dev/nvidiactl, /dev/dxg);
//  4. the simulator.
// clang-format on
// It never goes on past a library that was asked for by name, or a choice among copies that nobody made.
#pragma once

#include "base/error.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/driver/binding.hpp"

namespace kiln::device {

// Thread safe. The result has at least one device. environment says what was tried and why each failed.
[[nodiscard]] Result<driver::LibraryPointer> choose_driver(const DriverConfig& config,
                                                           driver::Steps* steps = nullptr);

}  // namespace kiln::device
