// Of kiln doctor: the HIP library that this process is bound to, and its devices.

#include <fmt/format.h>

#include "runtime/device/device.hpp"
#include "tools/kiln/diagnosis.hpp"
#include "tools/kiln/output.hpp"

namespace kiln::cli {

void diagnose_devices(const service::Settings& settings, Findings& findings) {
    const auto devices = device::open_devices(settings.driver);
    if (!devices) {
        findings.push_back({Verdict::wrong, "devices", devices.error().message,
                            "a HIP library with a device, or the simulator of this installation",
                            "correct or unset KILN_DEVICE and KILN_HIP_LIBRARY", devices.error().code});
        return;
    }
    for (const auto& device : *devices) {
        const auto& info = device->info();
        findings.push_back(
            {Verdict::ok, fmt::format("device {}", info.ordinal),
             fmt::format("{}, {}, {} compute units, {}{}", info.name, info.target, info.num_compute_units,
                         short_bytes(info.memory_bytes), info.simulated ? ", simulated" : ""),
             "", ""});
    }
}

}  // namespace kiln::cli
