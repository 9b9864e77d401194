#include "runtime/compile/code_object.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/compile/amdgpu_object.hpp"
#include "runtime/compile/cubin.hpp"
#include "runtime/compile/elf.hpp"

namespace kiln::compile {

std::size_t explicit_bytes(std::span<const KernelArgument> arguments) {
    std::size_t end = 0;
    for (const KernelArgument& argument : arguments) {
        if (!argument.is_hidden()) {
            end = std::max<std::size_t>(end, argument.offset + argument.size);
        }
    }
    return end;
}

Result<CodeObject> read_code_object(ByteView elf) {
    const MemorySource source(elf);
    auto file = ElfFile::read(source);
    if (!file) {
        return fail(file);
    }
    switch (const auto machine = file->header().e_machine) {
        case kMachineAmdGpu:
            return read_amdgpu_object(*file, source);
        case kMachineCuda:
            return read_cubin(*file, source);
        default:
            return fail(ErrorCode::bad_input, Stage::load,
                        fmt::format("code object: expected one for AMDGPU (machine {}) or CUDA (machine {}), "
                                    "found machine {}",
                                    kMachineAmdGpu, kMachineCuda, machine));
    }
}

}  // namespace kiln::compile
