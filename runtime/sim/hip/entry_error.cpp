// Errors and versions.
#include "runtime/sim/hip/entry.hpp"
#include "runtime/sim/hip/error_text.hpp"

using namespace kiln::sim::hip;

namespace {
// HIP 7.2.4 as its own library says it: major * 10^7 + minor * 10^5 + patch.
constexpr int kVersion = 70'253'211;
}  // namespace

KILN_EXPORT hipError_t hipInit(unsigned flags) {
    return enter([&](ThreadState&, Runtime&) { return flags == 0 ? hipSuccess : hipErrorInvalidValue; });
}

KILN_EXPORT hipError_t hipDriverGetVersion(int* version) {
    return enter([&](ThreadState&, Runtime&) {
        if (version == nullptr) {
            return hipErrorInvalidValue;
        }
        *version = kVersion;
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipRuntimeGetVersion(int* version) {
    return hipDriverGetVersion(version);
}

KILN_EXPORT hipError_t hipGetLastError() {
    return std::exchange(this_thread().last_error, hipSuccess);
}

KILN_EXPORT hipError_t hipPeekAtLastError() {
    return this_thread().last_error;
}

KILN_EXPORT hipError_t hipExtGetLastError() {
    return std::exchange(this_thread().last_command, hipSuccess);
}

KILN_EXPORT const char* hipGetErrorName(hipError_t error) {
    return error_text(error).name;
}

KILN_EXPORT const char* hipGetErrorString(hipError_t error) {
    return error_text(error).words;
}

KILN_EXPORT hipError_t hipDrvGetErrorName(hipError_t error, const char** text) {
    return enter([&](ThreadState&, Runtime&) {
        if (text == nullptr || error_text(error).name == error_text(~0U).name) {
            return hipErrorInvalidValue;
        }
        *text = error_text(error).name;
        return hipSuccess;
    });
}

KILN_EXPORT hipError_t hipDrvGetErrorString(hipError_t error, const char** text) {
    return enter([&](ThreadState&, Runtime&) {
        if (text == nullptr || error_text(error).name == error_text(~0U).name) {
            return hipErrorInvalidValue;
        }
        *text = error_text(error).words;
        return hipSuccess;
    });
}
