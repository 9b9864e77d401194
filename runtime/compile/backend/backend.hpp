// The compiler and the disassembler inside one process: the worker's, or the caller's own (in_process.hpp).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/compile/backend/disassembler.hpp"
#include "runtime/compile/backend/rtc.hpp"
#include "runtime/compile/protocol.hpp"

namespace kiln::compile::backend {

struct BackendConfig {
    Family family = Family::amdgpu;
    std::filesystem::path rtc;  // libhiprtc.so.7, libnvrtc.so.13
    // What it asks for by its bare name, and must get from beside it: libamd_comgr.so.3,
    // libnvrtc-builtins.so.13.0.
    std::filesystem::path companion;
    // Where comgr writes its temporary files; diagnostics that name them are given the request's names.
    std::filesystem::path temporary_folder;
    // What every compile is given besides its own options; must not change the code.
    std::vector<std::string> more_options;
};

// Loads the libraries at the first request that needs them, and never unloads them. Used by one thread at a
// time.
class Backend {
  public:
    explicit Backend(BackendConfig config) : config_(std::move(config)) {}

    // environment, with the loader's words, when a library can not be loaded.
    [[nodiscard]] Result<void> load_compiler();

    // Replies of kind compiled and disassembled. compile_failed carries the compiler's log, bad_input a code
    // object that is none, worker_failed that the compiler ran out of memory; anything else that is not about
    // the request is environment.
    [[nodiscard]] Result<Reply> compile(const CompileRequest& request);
    [[nodiscard]] Result<Reply> disassemble(ByteView code_object);

  private:
    [[nodiscard]] Result<void> load_companion();

    const BackendConfig config_;
    bool companion_loaded_ = false;
    std::optional<Disassembler> disassembler_;  // none of NVRTC's: a cubin has no lines of code
    std::optional<Rtc> rtc_;
};

}  // namespace kiln::compile::backend
