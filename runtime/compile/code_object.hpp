// What a gfx9 code object says of itself: an ELF file whose NT_AMDGPU_METADATA note is MessagePack, a .text
// section, and a 64-byte kernel descriptor per kernel (AMDGPUUsage, "Code Object Metadata" and "Kernel
// Descriptor").
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace kiln::compile {

struct KernelArgument {
    std::string name;        // empty where the compiler recorded none
    std::string value_kind;  // "by_value", "global_buffer", "hidden_block_count_x", ...
    std::uint32_t offset = 0;
    std::uint32_t size = 0;

    // Filled in by the driver; not the program's to pass.
    [[nodiscard]] bool is_hidden() const { return value_kind.starts_with("hidden_"); }
};

// The end of the last argument that the program passes.
[[nodiscard]] std::size_t explicit_bytes(std::span<const KernelArgument> arguments);

struct KernelInfo {
    std::string name;  // as hipModuleGetFunction takes it
    std::uint32_t kernarg_bytes = 0;
    std::uint32_t kernarg_align = 0;
    std::uint32_t vgprs = 0;  // of the unified file, accumulation registers included
    std::uint32_t agprs = 0;
    std::uint32_t sgprs = 0;
    std::uint32_t vgpr_spills = 0;
    std::uint32_t sgpr_spills = 0;
    std::uint32_t lds_bytes = 0;      // static
    std::uint32_t scratch_bytes = 0;  // per lane
    std::uint32_t max_threads = 0;    // per work-group
    std::uint32_t wavefront = 0;
    std::uint64_t descriptor_address = 0;  // virtual address of the kernel descriptor in the image
    std::uint64_t entry_address = 0;       // virtual address of the first instruction; lies in .text
    std::vector<KernelArgument> arguments;
};

struct LoadSegment {
    std::uint64_t address = 0;  // virtual
    std::uint64_t memory_bytes = 0;
    ByteView contents;  // of the file; the rest is zero
    bool executable = false;
};

struct CodeObject {
    std::string target;  // "amdgcn-amd-amdhsa--gfx950" gives "gfx950"; features as the metadata states them
    std::uint64_t text_address = 0;  // virtual
    ByteView text;                   // part of an executable segment
    std::vector<LoadSegment> segments;
    std::vector<KernelInfo> kernels;
};

// The views point into `elf`. bad_input says what is not as a code object has it; no byte pattern makes this
// read out of bounds. Dynamic relocations are refused: no template of ours has any.
[[nodiscard]] Result<CodeObject> read_code_object(ByteView elf);

}  // namespace kiln::compile
