// The attributes of a cubin's sections .nv.info and .nv.info.KERNEL. NVIDIA does not document them; what is
// read here agrees with what ptxas reports of the same kernels (tests/compile/cubin_test.cpp).
//
// clang-format off
//   attribute = format:u8 code:u8 value:u16                  formats 1 to 3: nothing, a byte, a half word
//             | format:u8 code:u8 size:u16 byte*             format 4
// clang-format on
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace kiln::compile {

enum class InfoCode : std::uint8_t {
    max_threads = 0x05,       // 3 words: of a block, by __launch_bounds__
    required_threads = 0x10,  // 3 words: of a block, exactly
    frame_size = 0x11,        // symbol, bytes of stack of that function alone
    min_stack_size = 0x12,    // symbol, bytes of stack with what it calls
    parameter = 0x17,         // index, ordinal:u16 offset:u16, size << 18 among other bits
    parameters_bytes = 0x19,  // value: of all parameters
    register_count = 0x2f,    // symbol, registers of a thread
    cluster = 0x3d,           // 3 words: blocks of a cluster, by __cluster_dims__
    large_parameter = 0x45,   // index, ordinal:u16 offset:u16, size; where the size has no room in the other
};

struct InfoAttribute {
    InfoCode code{};  // may be one that is not listed above
    std::uint16_t value = 0;
    std::vector<std::uint32_t> words;  // of format 4; bytes that make no whole word are left out
};

// bad_input where an attribute does not end within the section, or is of another format.
[[nodiscard]] Result<std::vector<InfoAttribute>> read_info(ByteView section);

}  // namespace kiln::compile
