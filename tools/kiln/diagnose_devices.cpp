// Of kiln doctor: the driver library that this process is bound to, and its devices.

#include <fmt/format.h>

#include "runtime/device/device.hpp"
#include "tools/kiln/diagnosis.hpp"
#include "tools/kiln/output.hpp"

namespace kiln::cli {

std::vector<std::string> diagnose_devices(const service::Settings& settings, Findings& findings) {
    const auto report = device::report_drivers(settings.driver);
    const auto devices = device::open_devices(settings.driver);
    for (const auto& held : report.held) {
        findings.push_back({Verdict::note, "driver library",
                            fmt::format("{}: this process holds it already", held), "", ""});
    }
    for (const auto& step : report.steps) {
        findings.push_back({Verdict::note, "driver library", step, "", ""});
    }
    if (!report.chosen.empty()) {
        findings.push_back(
            {Verdict::ok, "driver library", fmt::format("{}: {}", report.family, report.chosen), "", ""});
    }
    if (!devices) {
        findings.push_back({Verdict::wrong, "devices", devices.error().message,
                            "a driver library with a device, or the simulator of this installation",
                            "correct or unset KILN_DEVICE, KILN_HIP_LIBRARY and KILN_CUDA_LIBRARY",
                            devices.error().code});
        return {};
    }
    std::vector<std::string> targets;
    for (const auto& device : *devices) {
        const auto& info = device->info();
        findings.push_back(
            {Verdict::ok, fmt::format("device {}", info.ordinal),
             fmt::format("{}, {}, {} compute units, {}{}", info.name, info.target, info.num_compute_units,
                         short_bytes(info.memory_bytes), info.simulated ? ", simulated" : ""),
             "", ""});
        targets.push_back(info.target);
    }
    return targets;
}

}  // namespace kiln::cli
