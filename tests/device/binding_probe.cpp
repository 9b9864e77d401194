// clang-format off
// Says which driver library a process binds. Arguments, done in order:
//   open PATH      dlopen, as an engine that keeps its libraries to itself does
//   global PATH    dlopen into the global scope, as if linked
//   space PATH     dlopen into a link namespace of its own
//   in FOLDER      chdir
//   sim PATH       what DriverConfig::sim_library says from now on
//   bind DRIVER    automatic, hip, cuda or sim; prints "DRIVER PATH DEVICES simulated|real" or "DRIVER error: MESSAGE"
//   report DRIVER  prints what report_drivers says: "held: PATH", "step: TEXT", "chosen: PATH"
//   keep DRIVER    opens its devices, as a service does, and keeps them
//   load WHAT      loads a code object on the first device kept; prints "load: done" or "load: MESSAGE"
// clang-format on
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "runtime/device/choose.hpp"
#include "runtime/device/device.hpp"

using namespace kiln;
using namespace kiln::device;

namespace {

Driver driver_of(const std::string& word) {
    return word == "hip"    ? Driver::hip
           : word == "cuda" ? Driver::cuda
           : word == "sim"  ? Driver::sim
                            : Driver::automatic;
}

void print_bound(const char* driver, const DriverConfig& config) {
    const auto library = choose_driver(config);
    if (library) {
        std::printf("%s %s %d %s\n", driver, (*library)->path.c_str(), (*library)->num_devices,
                    (*library)->simulated ? "simulated" : "real");
    } else {
        std::printf("%s error: %s\n", driver, library.error().message.c_str());
    }
}

void print_report(const DriverReport& report) {
    for (const auto& path : report.held) {
        std::printf("held: %s\n", path.c_str());
    }
    for (const auto& step : report.steps) {
        std::printf("step: %s\n", step.c_str());
    }
    std::printf("chosen: %s\n", report.chosen.c_str());
}

}  // namespace

int main(int argc, char** argv) {
    DriverConfig config;
    std::vector<std::shared_ptr<Device>> kept;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string verb = argv[i];
        const char* const object = argv[i + 1];
        bool done = true;
        if (verb == "sim") {
            config.sim_library = object;
        } else if (verb == "in") {
            done = chdir(object) == 0;
        } else if (verb == "bind") {
            config.driver = driver_of(object);
            print_bound(object, config);
        } else if (verb == "report") {
            config.driver = driver_of(object);
            print_report(report_drivers(config));
        } else if (verb == "keep") {
            config.driver = driver_of(object);
            auto opened = open_devices(config);
            done = opened.has_value();
            kept = done ? *std::move(opened) : std::vector<std::shared_ptr<Device>>();
        } else if (verb == "load") {
            const auto module = kept.at(0)->load(Bytes(64));
            std::printf("load: %s\n", module ? "done" : module.error().message.c_str());
        } else if (verb == "space") {
            done = dlmopen(LM_ID_NEWLM, object, RTLD_NOW) != nullptr;
        } else {
            done = dlopen(object, RTLD_NOW | (verb == "global" ? RTLD_GLOBAL : RTLD_LOCAL)) != nullptr;
        }
        if (!done) {
            const char* const why = dlerror();
            std::fprintf(stderr, "%s %s: %s\n", verb.c_str(), object, why != nullptr ? why : "failed");
            return 2;
        }
    }
    // The loader is in order afterwards, for other threads too.
    std::thread([] { dlclose(dlopen("libm.so.6", RTLD_NOW)); }).join();
    return 0;
}
