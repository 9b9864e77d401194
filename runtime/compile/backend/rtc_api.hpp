// The entry points of a run-time compiler that a compile needs. NVRTC is what hipRTC was modelled on: name by
// name the same signatures, steps and results behind another prefix, so that one set of declarations serves
// both. Members bear the names of the libraries, without the prefix, with the signatures of hip/hiprtc.h and
// nvrtc.h; NVRTC's CUBINSize and CUBIN stand for CodeSize and Code.
#pragma once

#include <cstddef>

#include "runtime/compile/target_family.hpp"

namespace kiln::compile::backend {

struct RtcApi {
    using Program = void*;  // hiprtcProgram, nvrtcProgram

    int (*CreateProgram)(Program*, const char* source, const char* name, int num_headers,
                         const char* const* headers, const char* const* names) = nullptr;
    int (*CompileProgram)(Program, int num_options, const char* const* options) = nullptr;
    int (*DestroyProgram)(Program*) = nullptr;
    int (*GetProgramLogSize)(Program, std::size_t*) = nullptr;
    int (*GetProgramLog)(Program, char*) = nullptr;
    int (*GetCodeSize)(Program, std::size_t*) = nullptr;
    int (*GetCode)(Program, char*) = nullptr;
    const char* (*GetErrorString)(int) = nullptr;

    // hiprtcResult, nvrtcResult
    static constexpr int kSuccess = 0;           // ..._SUCCESS
    static constexpr int kOutOfMemory = 1;       // ..._ERROR_OUT_OF_MEMORY
    static constexpr int kInvalidOption = 5;     // ..._ERROR_INVALID_OPTION
    static constexpr int kCompilationError = 6;  // ..._ERROR_COMPILATION
};

// In what the two differ.
struct RtcNames {
    const char* prefix;
    const char* code_size;
    const char* code;
    const char* architecture_option;
    // Switches the compiler's own cache off, which is ours to keep. NVRTC's (CUDA 13) is the driver's: it
    // would load libcuda and call cuInit, in a process that has no business with a GPU. Null where there is
    // none.
    const char* no_cache_option;
};

[[nodiscard]] constexpr RtcNames names_of(Family family) {
    return family == Family::cuda
               ? RtcNames{"nvrtc", "GetCUBINSize", "GetCUBIN", "--gpu-architecture=", "-no-cache"}
               : RtcNames{"hiprtc", "GetCodeSize", "GetCode", "--offload-arch=", nullptr};
}

}  // namespace kiln::compile::backend
