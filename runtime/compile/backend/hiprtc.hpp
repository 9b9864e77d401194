// hipRTC, through the few entry points that a compile needs (hiprtc_api.hpp).
//
// What hipRTC adds to the options that it is given (ROCm 7.2): -O3, -mcumode, a -std that changed between
// releases, an implicit include of the runtime header (hiprtc_runtime.h), -nogpuinc, and the definitions
// __HIPCC_RTC__ and HIP_VERSION_*. A request states what matters of these itself.
// HIPRTC_COMPILE_OPTIONS_APPEND and AMD_COMGR_DRIVER_OPTIONS_APPEND would add more: the worker's environment
// has neither, and in-process compiling refuses where one is set.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/compile/backend/hiprtc_api.hpp"
#include "runtime/compile/backend/library.hpp"
#include "runtime/compile/compiler.hpp"

namespace kiln::compile::backend {

class Hiprtc {
  public:
    [[nodiscard]] static Result<Hiprtc> open(const std::filesystem::path& library);

    struct Compiled {
        std::string code_object;
        std::string log;
        std::uint64_t nanoseconds = 0;
    };
    // Adds --offload-arch and `more_options`. compile_failed carries the log as the message; anything that is
    // not about the source is environment.
    [[nodiscard]] Result<Compiled> compile(const CompileRequest& request,
                                           const std::vector<std::string>& more_options = {}) const;

  private:
    explicit Hiprtc(Library library) : library_(std::move(library)) {}
    [[nodiscard]] std::string log_of(HiprtcApi::Program program) const;

    Library library_;
    HiprtcApi api_;
};

}  // namespace kiln::compile::backend
