// A libamdhip64 that does nothing, fast: what remains of a launch over it is kiln's own.

#include <cstring>

#include "runtime/device/hip/device_prop.hpp"
#include "runtime/device/hip/types.hpp"

#define KILN_DOUBLE extern "C" __attribute__((visibility("default"))) int

namespace {

int loaded_module;
int found_function;

}  // namespace

KILN_DOUBLE hipGetDeviceCount(int* count) {
    *count = 1;
    return 0;
}

KILN_DOUBLE hipGetDevice(int* ordinal) {
    *ordinal = 0;
    return 0;
}

KILN_DOUBLE hipSetDevice(int) {
    return 0;
}

KILN_DOUBLE hipGetDevicePropertiesR0600(kiln::hip::hipDeviceProp_t* properties, int) {
    std::memset(properties, 0, sizeof(*properties));
    std::strcpy(properties->name, "driver double");
    std::strcpy(properties->gcnArchName, "gfx950:sramecc+:xnack-");
    properties->multiProcessorCount = 256;
    properties->warpSize = 64;
    return 0;
}

KILN_DOUBLE hipModuleLoadData(void** module, const void*) {
    *module = &loaded_module;
    return 0;
}

KILN_DOUBLE hipModuleUnload(void*) {
    return 0;
}

KILN_DOUBLE hipModuleGetFunction(void** function, void*, const char*) {
    *function = &found_function;
    return 0;
}

KILN_DOUBLE hipModuleLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                  void*, void**, void**) {
    return 0;
}

KILN_DOUBLE hipGetLastError() {
    return 0;
}
