// The MessagePack document of a code object's NT_AMDGPU_METADATA note (AMDGPUUsage, "Code Object V5
// Metadata").
#pragma once

#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "runtime/compile/code_object.hpp"

namespace kiln::compile {

struct Metadata {
    struct Kernel {
        KernelInfo info;                // all but its addresses
        std::string descriptor_symbol;  // "NAME.kd"
    };
    std::string target;
    std::vector<Kernel> kernels;
};

// bad_input names the member that is missing or is not as it must be.
[[nodiscard]] Result<Metadata> read_metadata(ByteView message_pack);

}  // namespace kiln::compile
