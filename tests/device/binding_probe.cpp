// Says which libamdhip64 a process binds. Arguments, done in order:
//   open PATH     dlopen, as an engine that keeps its libraries to itself does
//   global PATH   dlopen into the global scope, as if linked
//   bind DRIVER   automatic, hip or sim; prints "DRIVER PATH DEVICES simulated|real" or "DRIVER error:
//   MESSAGE" sim PATH      what DriverConfig::sim_library says from now on
#include <dlfcn.h>

#include <cstdio>
#include <string>

#include "runtime/device/hip/binding.hpp"

using namespace kiln::device;

int main(int argc, char** argv) {
    DriverConfig config;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string verb = argv[i];
        const std::string object = argv[i + 1];
        if (verb == "sim") {
            config.sim_library = object;
        } else if (verb == "bind") {
            config.driver = object == "hip" ? Driver::hip : object == "sim" ? Driver::sim : Driver::automatic;
            const auto library = hip::bind(config);
            if (library) {
                std::printf("%s %s %d %s\n", object.c_str(), (*library)->path.c_str(),
                            (*library)->num_devices, (*library)->api.simulated() ? "simulated" : "real");
            } else {
                std::printf("%s error: %s\n", object.c_str(), library.error().message.c_str());
            }
        } else if (dlopen(object.c_str(), RTLD_NOW | (verb == "global" ? RTLD_GLOBAL : RTLD_LOCAL)) ==
                   nullptr) {
            std::fprintf(stderr, "%s\n", dlerror());
            return 2;
        }
    }
    return 0;
}
