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

// As Device::is_earlier_failure: true for all but the values that speak of the code or its launch.
[[nodiscard]] bool is_earlier_failure(int error);

// HIP may answer any call with the failure of an earlier asynchronous one, whether it did its work or not.
// What is entered for is then refused with that failure; but what destroys something has to get in, and
// insists.
enum class Entering { once, insist };

// Makes a device the calling thread's current one, and puts back what was current before; a line in the log
// says when it can not.
class CurrentDevice {
  public:
    CurrentDevice(const Api& api, int ordinal, Entering entering = Entering::once);
    ~CurrentDevice();
    CurrentDevice(const CurrentDevice&) = delete;
    CurrentDevice& operator=(const CurrentDevice&) = delete;
    // Why the device is not current.
    [[nodiscard]] hipError_t error() const { return error_; }
    // A failure that insisting got past, for the caller to pass on.
    [[nodiscard]] hipError_t overcome() const { return overcome_; }

  private:
    const Api& api_;
    int previous_ = -1;  // negative: nothing to put back
    hipError_t error_ = hipSuccess;
    hipError_t overcome_ = hipSuccess;
};

// Lets the calling thread do, while any stream captures, what a capture would otherwise forbid: load and
// unload. Where error() says that the driver did not let it, neither may be done: it would break a capture.
class RelaxedCapture {
  public:
    explicit RelaxedCapture(const Api& api, Entering entering = Entering::once);
    ~RelaxedCapture();
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;
    [[nodiscard]] hipError_t error() const { return error_; }

  private:
    // Swaps mode_ with the thread's. To repeat a swap undoes it, so what mode_ holds says whether it was
    // done.
    [[nodiscard]] hipError_t exchange();

    const Api& api_;
    hipStreamCaptureMode mode_ = hipStreamCaptureModeRelaxed;  // afterwards: the thread's own
    bool exchanged_ = false;
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
