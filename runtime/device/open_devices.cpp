#include <utility>

#include "runtime/device/choose.hpp"
#include "runtime/device/cuda/binding.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/hip/binding.hpp"

namespace kiln::device {

Result<std::vector<std::shared_ptr<Device>>> open_devices(const DriverConfig& config) {
    auto library = choose_driver(config);
    if (!library) {
        return fail(library);
    }
    std::vector<std::shared_ptr<Device>> devices;
    for (int ordinal = 0; ordinal < (*library)->num_devices; ++ordinal) {
        auto device = (*library)->family->open(*library, ordinal, config);
        if (!device) {
            return fail(device);
        }
        devices.push_back(*std::move(device));
    }
    return devices;
}

DriverReport report_drivers(const DriverConfig& config) {
    DriverReport report;
    for (const driver::Family* family : {&hip::family(), &cuda::family()}) {
        for (auto& copy : driver::find_copies(family->stem)) {
            report.held.push_back(std::move(copy.path));
        }
    }
    auto library = choose_driver(config, &report.steps);
    if (library) {
        report.chosen = (*library)->path.string();
        report.family = (*library)->family->what;
    } else {
        report.steps.push_back(std::move(library.error().message));
    }
    return report;
}

}  // namespace kiln::device
