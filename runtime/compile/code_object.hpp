// What a code object says of itself, by the machine of its ELF file: a gfx9 code object (amdgpu_object.hpp),
// whose NT_AMDGPU_METADATA note is MessagePack, with one .text and a 64-byte kernel descriptor per kernel; or
// a cubin (cubin.hpp), with a section of code and a section .nv.info of attributes per kernel.
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
    std::string name;        // empty where the compiler recorded none; a cubin never holds any
    std::string value_kind;  // "by_value", "global_buffer", "hidden_block_count_x", ...; empty in a cubin
    std::uint32_t offset = 0;
    std::uint32_t size = 0;

    // Filled in by the driver; not the program's to pass.
    [[nodiscard]] bool is_hidden() const { return value_kind.starts_with("hidden_"); }
};

// The end of the last argument that the program passes.
[[nodiscard]] std::size_t explicit_bytes(std::span<const KernelArgument> arguments);

struct KernelInfo {
    std::string name;  // as hipModuleGetFunction and cuModuleGetFunction take it
    std::uint32_t kernarg_bytes = 0;
    std::uint32_t kernarg_align = 0;  // 0 of a cubin, which does not say
    // Of the unified file, accumulation registers included; of a cubin the registers of a thread.
    std::uint32_t vgprs = 0;
    std::uint32_t agprs = 0;  // 0 of a cubin, as are the three that follow: it has or says no such thing
    std::uint32_t sgprs = 0;
    std::uint32_t vgpr_spills = 0;
    std::uint32_t sgpr_spills = 0;
    std::uint32_t lds_bytes = 0;      // static; without what the system takes of a CUDA block's shared memory
    std::uint32_t scratch_bytes = 0;  // per lane; of a cubin the stack of a thread
    std::uint32_t max_threads = 0;    // per work-group
    std::uint32_t wavefront = 0;      // lanes of a wave, or of a warp
    std::uint32_t cluster = 1;  // work-groups of a cluster that the source demands; 1 where it demands none
    std::uint64_t descriptor_address =
        0;                            // virtual address of the kernel descriptor in the image; 0 of a cubin
    std::uint64_t entry_address = 0;  // virtual address of the first instruction; lies in .text
    std::vector<KernelArgument> arguments;
};

struct LoadSegment {
    std::uint64_t address = 0;  // virtual
    std::uint64_t memory_bytes = 0;
    ByteView contents;  // of the file; the rest is zero
    bool executable = false;
};

struct CodeObject {
    // "amdgcn-amd-amdhsa--gfx950" gives "gfx950"; features as the metadata states them. "sm_90a" of a cubin.
    std::string target;
    // Of a cubin, whose parts get their addresses when it is loaded: 0, and the file from the first to the
    // last section of code.
    std::uint64_t text_address = 0;     // virtual
    ByteView text;                      // part of an executable segment
    std::vector<LoadSegment> segments;  // none of a cubin
    std::vector<KernelInfo> kernels;
};

// The views point into `elf`. bad_input says what is not as a code object has it; no byte pattern makes this
// read out of bounds. Dynamic relocations of a gfx9 code object are refused: no template of ours has any.
[[nodiscard]] Result<CodeObject> read_code_object(ByteView elf);

}  // namespace kiln::compile
