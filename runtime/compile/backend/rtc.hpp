// hipRTC or NVRTC, through the few entry points that a compile needs (rtc_api.hpp).
//
// What hipRTC adds to the options that it is given (ROCm 7.2): -O3, -mcumode, a -std that changed between
// releases, an implicit include of the runtime header (hiprtc_runtime.h), -nogpuinc, and the definitions
// __HIPCC_RTC__ and HIP_VERSION_*. A request states what matters of these itself.
// HIPRTC_COMPILE_OPTIONS_APPEND and AMD_COMGR_DRIVER_OPTIONS_APPEND would add more, NVRTC_APPEND_FLAGS to
// NVRTC's: the worker's environment has none of them, and in-process compiling refuses where one is set.
//
// NVRTC (CUDA 13) knows no -O: it optimises unless -G is given, and refuses options that it does not know.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/compile/backend/library.hpp"
#include "runtime/compile/backend/rtc_api.hpp"
#include "runtime/compile/compiler.hpp"

namespace kiln::compile::backend {

class Rtc {
  public:
    [[nodiscard]] static Result<Rtc> open(Family family, const std::filesystem::path& library);

    struct Compiled {
        std::string code_object;
        std::string log;
        std::uint64_t nanoseconds = 0;
    };
    // Adds the options that name the target and switch the compiler's own cache off, and `more_options`.
    // compile_failed carries the log as the message, worker_failed that the compiler ran out of memory;
    // anything else that is not about the source is environment.
    [[nodiscard]] Result<Compiled> compile(const CompileRequest& request,
                                           const std::vector<std::string>& more_options = {});

  private:
    Rtc(Family family, Library library) : names_(names_of(family)), library_(std::move(library)) {}
    [[nodiscard]] Result<Compiled> compile_with(const CompileRequest& request,
                                                const std::vector<std::string>& more_options) const;
    [[nodiscard]] std::string log_of(RtcApi::Program program) const;

    RtcNames names_;
    Library library_;
    RtcApi api_;
};

}  // namespace kiln::compile::backend
