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

DriverReport report_drivers(const DriverConfig& config) {
    DriverReport report;
    for (auto& copy : hip::find_copies()) {
        report.held.push_back(std::move(copy.path));
    }
    auto library = hip::bind(config, &report.steps);
    if (library) {
        report.chosen = (*library)->path.string();
    } else {
        report.steps.push_back(std::move(library.error().message));
    }
    return report;
}

}  // namespace kiln::device
