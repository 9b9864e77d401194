// The compiler and the disassembler inside one process: the worker's, or the caller's own (in_process.hpp).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/compile/backend/disassembler.hpp"
#include "runtime/compile/backend/hiprtc.hpp"
#include "runtime/compile/protocol.hpp"

namespace kiln::compile::backend {

struct BackendConfig {
    std::filesystem::path hiprtc;  // libhiprtc.so.7
    std::filesystem::path comgr;   // the libamd_comgr that belongs to it
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
    // object that is none; anything that is not about the request is environment.
    [[nodiscard]] Result<Reply> compile(const CompileRequest& request);
    [[nodiscard]] Result<Reply> disassemble(ByteView code_object);

  private:
    [[nodiscard]] Result<void> load_disassembler();

    const BackendConfig config_;
    std::optional<Disassembler> disassembler_;
    std::optional<Hiprtc> hiprtc_;
};

}  // namespace kiln::compile::backend
