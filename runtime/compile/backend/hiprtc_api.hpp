// The entry points of libhiprtc that a compile needs, with the signatures of hip/hiprtc.h.
#pragma once

#include <cstddef>

namespace kiln::compile::backend {

struct HiprtcApi {
    using Program = void*;  // hiprtcProgram

    int (*hiprtcCreateProgram)(Program*, const char* source, const char* name, int num_headers,
                               const char* const* headers, const char* const* names) = nullptr;
    int (*hiprtcCompileProgram)(Program, int num_options, const char* const* options) = nullptr;
    int (*hiprtcDestroyProgram)(Program*) = nullptr;
    int (*hiprtcGetProgramLogSize)(Program, std::size_t*) = nullptr;
    int (*hiprtcGetProgramLog)(Program, char*) = nullptr;
    int (*hiprtcGetCodeSize)(Program, std::size_t*) = nullptr;
    int (*hiprtcGetCode)(Program, char*) = nullptr;
    const char* (*hiprtcGetErrorString)(int) = nullptr;

    // hiprtcResult
    static constexpr int kSuccess = 0;           // HIPRTC_SUCCESS
    static constexpr int kInvalidOption = 5;     // HIPRTC_ERROR_INVALID_OPTION
    static constexpr int kCompilationError = 6;  // HIPRTC_ERROR_COMPILATION
};

}  // namespace kiln::compile::backend
