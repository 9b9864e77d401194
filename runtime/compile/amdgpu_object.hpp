// A gfx9 code object: a shared object under the HSA ABI (AMDGPUUsage, "Code Object Metadata" and "Kernel
// Descriptor").
#pragma once

#include "base/error.hpp"
#include "runtime/compile/code_object.hpp"
#include "runtime/compile/elf.hpp"

namespace kiln::compile {

constexpr std::uint16_t kMachineAmdGpu = 224;  // EM_AMDGPU

// As read_code_object(), of a file for this machine.
[[nodiscard]] Result<CodeObject> read_amdgpu_object(const ElfFile& file, const MemorySource& source);

}  // namespace kiln::compile
