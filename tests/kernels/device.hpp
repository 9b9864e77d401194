// Runs a compiled linear/small_m on the simulator, or on the device that KILN_DEVICE names.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/device/device.hpp"
#include "runtime/operators/linear_reference.hpp"
#include "shipped.hpp"

namespace kiln::kernels_test {

// The inputs of a case, in device memory for as long as this lives.
class LoadedCase {
  public:
    LoadedCase(device::Device& device, const operators::LinearArrays& arrays);
    ~LoadedCase();
    LoadedCase(const LoadedCase&) = delete;
    LoadedCase& operator=(const LoadedCase&) = delete;

    struct Run {
        std::vector<std::uint16_t> out;  // bf16 bits, [m, n]
        bool past_end_untouched = true;  // what lies behind the last row of `out`, up to the case's own m
        device::ExecutionCounts counts;  // on a device that counts
    };
    // The first m rows.
    [[nodiscard]] Run run(const Built& built, std::int64_t m) const;

  private:
    [[nodiscard]] void* load(ByteView contents);

    device::Device& device_;
    const std::int64_t m_, n_, ldx_;
    std::vector<void*> owned_;
    void* x_;
    void* w_;
    void* w_scale_;
    void* out_;
};

std::shared_ptr<device::Device> open_simulator();
// The first device of the driver that KILN_DEVICE names, the simulator where it names none. Null, with the
// reason printed, where this machine has no such device.
std::shared_ptr<device::Device> open_device();

}  // namespace kiln::kernels_test
