// A cubin: what NVRTC and ptxas make for one NVIDIA processor. An ELF file with a section .text.KERNEL,
// .nv.info.KERNEL and, where it has static shared memory, .nv.shared.KERNEL for each kernel; no virtual
// addresses, and neither names nor kinds of arguments.
#pragma once

#include "base/error.hpp"
#include "runtime/compile/code_object.hpp"
#include "runtime/compile/elf.hpp"

namespace kiln::compile {

constexpr std::uint16_t kMachineCuda = 190;  // EM_CUDA

// As read_code_object(), of a file for this machine.
[[nodiscard]] Result<CodeObject> read_cubin(const ElfFile& file, const MemorySource& source);

}  // namespace kiln::compile
