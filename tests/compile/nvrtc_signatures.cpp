// Our declarations of NVRTC against its header; what is wrong does not compile. Built where there is a
// header.

#include <nvrtc.h>

#include "runtime/compile/backend/rtc_api.hpp"
#include "tests/same_signature.hpp"

namespace {

using kiln::compile::backend::RtcApi;

#define KILN_NVRTC(ours, theirs)                                                           \
    static_assert(kiln::test::SameSignature<std::remove_pointer_t<decltype(RtcApi::ours)>, \
                                            decltype(::nvrtc##theirs)>::value,             \
                  "runtime/compile/backend/rtc_api.hpp: " #ours)
KILN_NVRTC(CreateProgram, CreateProgram);
KILN_NVRTC(CompileProgram, CompileProgram);
KILN_NVRTC(DestroyProgram, DestroyProgram);
KILN_NVRTC(GetProgramLogSize, GetProgramLogSize);
KILN_NVRTC(GetProgramLog, GetProgramLog);
KILN_NVRTC(GetCodeSize, GetCUBINSize);
KILN_NVRTC(GetCode, GetCUBIN);
KILN_NVRTC(GetErrorString, GetErrorString);

static_assert(RtcApi::kSuccess == NVRTC_SUCCESS && RtcApi::kOutOfMemory == NVRTC_ERROR_OUT_OF_MEMORY &&
              RtcApi::kInvalidOption == NVRTC_ERROR_INVALID_OPTION &&
              RtcApi::kCompilationError == NVRTC_ERROR_COMPILATION);

}  // namespace
