// The driver that a test program is built for: the look-alike as HIP's, or, with KILN_TEST_CUDA, the double
// of CUDA's over it (faulty/faulty_cuda.cpp). What the two answer differently, by name.
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "runtime/device/device.hpp"

namespace kiln::test {

#ifdef KILN_TEST_CUDA
inline constexpr bool kCuda = true;
inline constexpr const char* kDriverLibrary = KILN_TEST_FAULTY_CUDA;
inline constexpr const char* kTarget = "sm_90a";
inline constexpr int kNoneCurrent = -1;  // of a thread that has not said which device
#else
inline constexpr bool kCuda = false;
inline constexpr const char* kDriverLibrary = KILN_TEST_LOOKALIKE;
inline constexpr const char* kTarget = "gfx950:sramecc+:xnack-";
inline constexpr int kNoneCurrent = 0;
#endif

inline std::vector<std::shared_ptr<device::Device>> open_driver(const char* library = kDriverLibrary) {
    device::DriverConfig config{
        .driver = kCuda ? device::Driver::cuda : device::Driver::hip, .hip_library = {}, .sim_library = {}};
    (kCuda ? config.cuda_library : config.hip_library) = library;
    auto result = device::open_devices(config);
    REQUIRE_MESSAGE(result, (result ? "" : result.error().message));
    return *std::move(result);
}

// The thread's state in the driver, asked past the adapter.
template <class T>
T driver_entry(const char* name) {
    static void* const library = dlopen(kDriverLibrary, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr);
    return reinterpret_cast<T>(dlsym(library, name));
}
inline int last_error() {
    return kCuda ? 0 : driver_entry<int (*)()>("hipPeekAtLastError")();
}
inline int current_device() {
    int device = kNoneCurrent;
    if constexpr (kCuda) {
        return driver_entry<int (*)()>("faulty_current_device")();
    }
    CHECK(driver_entry<int (*)(int*)>("hipGetDevice")(&device) == 0);
    return device;
}

// How a message names one of HIP's errors, or CUDA's for the same thing.
inline const char* error_text(const char* hip, const char* cuda) {
    return kCuda ? cuda : hip;
}

}  // namespace kiln::test
