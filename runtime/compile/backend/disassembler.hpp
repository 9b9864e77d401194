// The disassembler of libamd_comgr.
#pragma once

#include <filesystem>
#include <string>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "runtime/compile/backend/comgr_api.hpp"
#include "runtime/compile/backend/library.hpp"

namespace kiln::compile::backend {

class Disassembler {
  public:
    [[nodiscard]] static Result<Disassembler> open(const std::filesystem::path& library);

    // The lines of code (disassembly.hpp) of a whole code object. bad_input when it is none; environment when
    // comgr does not know its target.
    [[nodiscard]] Result<std::string> code_lines(ByteView code_object) const;

  private:
    explicit Disassembler(Library library) : library_(std::move(library)) {}

    Library library_;
    ComgrApi api_;
};

}  // namespace kiln::compile::backend
