// hipRTC, through the few entry points that a compile needs. The signatures are those of hip/hiprtc.h.
//
// What hipRTC adds to the options that it is given (ROCm 7.2): -O3, -mcumode, a -std that changed between
// releases, an implicit include of the runtime header (hiprtc_runtime.h), -nogpuinc, and the definitions
// __HIPCC_RTC__ and HIP_VERSION_*. A request states what matters of these itself.
// HIPRTC_COMPILE_OPTIONS_APPEND and AMD_COMGR_DRIVER_OPTIONS_APPEND would add more: the worker's environment
// has neither.
#pragma once

#include <filesystem>
#include <string>

#include "base/error.hpp"
#include "runtime/compile/compiler.hpp"
#include "runtime/compile/worker/library.hpp"

namespace kiln::compile::worker {

class Hiprtc {
  public:
    [[nodiscard]] static Result<Hiprtc> open(const std::filesystem::path& library);

    struct Compiled {
        std::string code_object;
        std::string log;
        std::uint64_t nanoseconds = 0;
    };
    // Adds --offload-arch and nothing else. compile_failed carries the log as the message; anything that is
    // not about the source is environment.
    [[nodiscard]] Result<Compiled> compile(const CompileRequest& request) const;

  private:
    using Program = void*;

    explicit Hiprtc(Library library) : library_(std::move(library)) {}
    [[nodiscard]] std::string log_of(Program program) const;

    Library library_;
    int (*create_)(Program*, const char* source, const char* name, int num_headers,
                   const char* const* headers, const char* const* names) = nullptr;
    int (*compile_)(Program, int num_options, const char* const* options) = nullptr;
    int (*destroy_)(Program*) = nullptr;
    int (*log_size_)(Program, std::size_t*) = nullptr;
    int (*log_)(Program, char*) = nullptr;
    int (*code_size_)(Program, std::size_t*) = nullptr;
    int (*code_)(Program, char*) = nullptr;
    const char* (*error_string_)(int) = nullptr;
};

}  // namespace kiln::compile::worker
