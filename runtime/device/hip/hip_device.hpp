// A GPU behind HIP's runtime library, real or simulated.
#pragma once

#include <memory>
#include <utility>

#include "runtime/device/device.hpp"
#include "runtime/device/hip/binding.hpp"

namespace kiln::device::hip {

// One call of the library failed: "hipMalloc (4096 bytes) on device 0: hipErrorOutOfMemory (2): ...". Takes
// back the last error that the call left behind.
[[nodiscard]] Error driver_error(const Api& api, ErrorCode code, Stage stage, std::string_view what,
                                 int ordinal, hipError_t error);

// As Device::is_earlier_failure.
[[nodiscard]] bool is_earlier_failure(int error);

// Makes a device the calling thread's current one, and puts back what was current before. Both are asked for
// again where the driver fails once; a line in the log says when a device can not be put back.
class CurrentDevice {
  public:
    CurrentDevice(const Api& api, int ordinal);
    ~CurrentDevice();
    CurrentDevice(const CurrentDevice&) = delete;
    CurrentDevice& operator=(const CurrentDevice&) = delete;
    [[nodiscard]] hipError_t error() const { return error_; }

  private:
    const Api& api_;
    int previous_ = -1;  // negative: nothing to put back
    hipError_t error_ = hipSuccess;
};

// Lets the calling thread do, while any stream captures, what a capture would otherwise forbid: load and
// unload. Where error() says that the driver did not let it, neither may be done: it would break a capture.
class RelaxedCapture {
  public:
    explicit RelaxedCapture(const Api& api);
    ~RelaxedCapture();
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;
    [[nodiscard]] hipError_t error() const { return error_; }

  private:
    const Api& api_;
    hipStreamCaptureMode mode_ = hipStreamCaptureModeRelaxed;  // afterwards: the thread's own
    hipError_t error_ = hipSuccess;
};

// Tells a simulator where the calling thread's loads find listings; a real driver has nothing to be told.
class SimPlaces {
  public:
    SimPlaces(const Api& api, const DriverConfig& config);
    ~SimPlaces();
    SimPlaces(const SimPlaces&) = delete;
    SimPlaces& operator=(const SimPlaces&) = delete;

  private:
    const Api& api_;
};

// Loads `code_object` on the device. The module keeps the library.
[[nodiscard]] Result<std::unique_ptr<Module>> load_module(std::shared_ptr<const Library> library, int ordinal,
                                                          ByteView code_object);

// The device keeps what the configuration says of a simulator's listings.
[[nodiscard]] Result<std::shared_ptr<Device>> open_device(std::shared_ptr<const Library> library, int ordinal,
                                                          const DriverConfig& config);

}  // namespace kiln::device::hip
