// One array in the memory of a device, freed with its owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "runtime/device/device.hpp"

namespace kiln::service {

class DeviceArray {
  public:
    [[nodiscard]] static Result<DeviceArray> create(const std::shared_ptr<device::Device>& device,
                                                    std::size_t bytes) {
        Result<void*> pointer = device->allocate(bytes);
        if (!pointer) {
            return fail(pointer);
        }
        return DeviceArray(device, *pointer);
    }

    // Exactly as large as `bytes`: on a simulated device, a kernel that reads past the end is found out.
    [[nodiscard]] static Result<DeviceArray> upload(const std::shared_ptr<device::Device>& device,
                                                    ByteView bytes) {
        Result<DeviceArray> array = create(device, bytes.size());
        if (array) {
            if (Result<void> copied = device->copy_to_device(array->pointer_, bytes, nullptr); !copied) {
                return fail(copied);
            }
        }
        return array;
    }

    DeviceArray(DeviceArray&& other) noexcept
        : device_(std::move(other.device_)), pointer_(std::exchange(other.pointer_, nullptr)) {}
    DeviceArray& operator=(DeviceArray&&) = delete;
    ~DeviceArray() {
        if (pointer_ != nullptr) {
            // Nothing can be done about a driver that refuses this.
            static_cast<void>(device_->free(pointer_));
        }
    }

    [[nodiscard]] void* get() const { return pointer_; }

  private:
    DeviceArray(std::shared_ptr<device::Device> device, void* pointer)
        : device_(std::move(device)), pointer_(pointer) {}

    std::shared_ptr<device::Device> device_;
    void* pointer_;
};

[[nodiscard]] inline std::vector<void*> pointers_of(const std::vector<DeviceArray>& arrays) {
    std::vector<void*> pointers(arrays.size());
    std::ranges::transform(arrays, pointers.begin(), &DeviceArray::get);
    return pointers;
}

}  // namespace kiln::service
