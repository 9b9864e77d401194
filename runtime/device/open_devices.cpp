#include "runtime/device/device.hpp"
#include "runtime/device/hip/hip_device.hpp"

namespace kiln::device {

Result<std::vector<std::shared_ptr<Device>>> open_devices(const DriverConfig& config) {
    auto library = hip::bind(config);
    if (!library) {
        return fail(library);
    }
    std::vector<std::shared_ptr<Device>> devices;
    for (int ordinal = 0; ordinal < (*library)->num_devices; ++ordinal) {
        auto device = hip::open_device(*library, ordinal, config);
        if (!device) {
            return fail(device);
        }
        devices.push_back(*std::move(device));
    }
    return devices;
}

}  // namespace kiln::device
