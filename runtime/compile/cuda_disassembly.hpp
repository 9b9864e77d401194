// The machine code of a cubin as text: NVRTC comes without a disassembler, so that of a CUDA toolkit is asked
// where there is one.
#pragma once

#include <string>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "runtime/compile/compiler.hpp"

namespace kiln::compile {

// What nvdisasm or else cuobjdump prints, found as toolchain.hpp says. environment names where neither was
// found, or says how the program failed.
[[nodiscard]] Result<std::string> disassemble_cubin(ByteView cubin, const CompilerConfig& config = {});

}  // namespace kiln::compile
