// A loaded code object: its image, its instructions, its kernels.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "runtime/compile/code_object.hpp"
#include "runtime/sim/code.hpp"
#include "runtime/sim/machine.hpp"

namespace kiln::sim {

// What the kernel descriptor asks for (AMDGPUUsage, "Kernel Descriptor").
struct Descriptor {
    std::uint32_t lds_bytes = 0;
    std::uint32_t private_bytes = 0;
    std::uint32_t kernarg_bytes = 0;
    std::int64_t entry_offset = 0;  // from the descriptor
    std::uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
    std::uint16_t properties = 0;
    std::uint16_t preload = 0;  // kernarg preload: dwords, then the first dword << 7

    [[nodiscard]] unsigned vgprs() const { return ((rsrc1 & 0x3f) + 1) * 8; }
    [[nodiscard]] unsigned accum_offset() const { return ((rsrc3 & 0x3f) + 1) * 4; }
    [[nodiscard]] unsigned float_mode() const { return rsrc1 >> 12 & 0xff; }
    [[nodiscard]] unsigned user_sgprs() const { return rsrc2 >> 1 & 0x1f; }
    [[nodiscard]] bool has_group_id(unsigned axis) const { return rsrc2 >> (7 + axis) & 1; }
    [[nodiscard]] unsigned work_item_axes() const { return (rsrc2 >> 11 & 3) + 1; }
    [[nodiscard]] bool has_dispatch_pointer() const { return properties >> 1 & 1; }
    [[nodiscard]] bool has_queue_pointer() const { return properties >> 2 & 1; }
    [[nodiscard]] bool has_kernarg_pointer() const { return properties >> 3 & 1; }
    [[nodiscard]] bool has_dispatch_id() const { return properties >> 4 & 1; }
    [[nodiscard]] unsigned preload_dwords() const { return preload & 0x7f; }
    [[nodiscard]] unsigned preload_first() const { return preload >> 7; }
};

struct Kernel {
    std::string name;
    Descriptor descriptor;
    std::uint32_t entry = 0;  // index of the first instruction
    std::uint32_t max_threads = 0;
    std::vector<compile::KernelArgument> arguments;
    std::uint64_t object_address = 0;  // of the descriptor
    const Code* code = nullptr;
};

}  // namespace kiln::sim
