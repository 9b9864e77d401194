// Devices.
#include <algorithm>
#include <cstring>

#include "runtime/sim/hip/entry.hpp"
#include "runtime/sim/hip/properties.hpp"

using namespace kiln::sim::hip;

namespace {

// Runs `body(device)` for a valid ordinal and a place to put the answer.
template <class Body>
hipError_t enter_device(const void* result, int ordinal, Body&& body) noexcept {
    return enter([&](ThreadState&, Runtime& runtime) {
        if (result == nullptr) {
            return hipErrorInvalidValue;
        }
        return runtime.valid(ordinal) ? body(runtime.device(ordinal)) : hipErrorInvalidDevice;
    });
}

}  // namespace

KILN_EXPORT hipError_t hipGetDeviceCount(int* count) {
    return enter([&](ThreadState&, Runtime& runtime) {
        if (count == nullptr) {
            return hipErrorInvalidValue;
        }
        *count = runtime.num_devices();
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipGetDevice(int* device) {
    return enter([&](ThreadState& thread, Runtime&) {
        if (device == nullptr) {
            return hipErrorInvalidValue;
        }
        *device = thread.device;
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipSetDevice(int device) {
    return enter([&](ThreadState& thread, Runtime& runtime) {
        if (!runtime.valid(device)) {
            return hipErrorInvalidDevice;
        }
        thread.device = device;
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipDeviceGet(hipDevice_t* device, int ordinal) {
    return enter_device(device, ordinal, [&](SimDevice&) {
        *device = ordinal;
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipDeviceGetName(char* name, int bytes, hipDevice_t device) {
    return enter_device(name, device, [&](SimDevice& found) {
        if (bytes <= 0) {
            return hipErrorInvalidValue;
        }
        const auto properties = properties_of(found);
        const auto length = std::min(std::strlen(properties.name), static_cast<std::size_t>(bytes) - 1);
        std::memcpy(name, properties.name, length);
        name[length] = '\0';
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipDeviceTotalMem(std::size_t* bytes, hipDevice_t device) {
    return enter_device(bytes, device, [&](SimDevice& found) {
        *bytes = found.memory().capacity_bytes();
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipDeviceComputeCapability(int* major, int* minor, hipDevice_t device) {
    return enter_device(minor != nullptr ? major : nullptr, device, [&](SimDevice& found) {
        const auto properties = properties_of(found);
        *major = properties.major;
        *minor = properties.minor;
        return hipSuccess;
    });
}

// The older structure of the unversioned symbol is not offered: HIP's header has said R0600 since 6.0.
KILN_EXPORT hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_t* properties, int device) {
    return enter_device(properties, device, [&](SimDevice& found) {
        *properties = properties_of(found);
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipDeviceGetAttribute(int* value, int attribute, int device) {
    return enter_device(value, device, [&](SimDevice& found) {
        const auto known = attribute_of(found, attribute);
        *value = known.value_or(*value);
        return known ? hipSuccess : hipErrorInvalidValue;
    });
}

KILN_EXPORT hipError_t hipDeviceCanAccessPeer(int* can, int device, int peer) {
    return enter_device(can, device, [&](SimDevice&) {
        *can = 0;
        return Runtime::get().valid(peer) ? hipSuccess : hipErrorInvalidDevice;
    });
}

KILN_EXPORT hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
    return enter([&](ThreadState&, Runtime&) {
        if (least != nullptr) {
            *least = 1;
        }
        if (greatest != nullptr) {
            *greatest = -1;
        }
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipDeviceSynchronize() {
    return enter([&](ThreadState&, Runtime& runtime) { return runtime.synchronize(runtime.current()); });
}

// Waits for the device's work and clears its fault. Handles and memory stay valid, which HIP does not
// promise.
KILN_EXPORT hipError_t hipDeviceReset() {
    return enter_outside_capture([&](ThreadState&, Runtime& runtime) {
        SimDevice& device = runtime.current();
        static_cast<void>(runtime.synchronize(device));  // the fault, which goes now
        device.reset_fault();
        return hipSuccess;
    });
}
