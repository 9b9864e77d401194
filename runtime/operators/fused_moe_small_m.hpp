// The template fused_moe/small_m: which constants it takes, and how what it compiles to is launched. The
// contract is kernel_src/fused_moe/README.md.
#pragma once

#include "runtime/operators/operator.hpp"

namespace kiln::operators {

[[nodiscard]] const Template& fused_moe_small_m_gfx950();

}  // namespace kiln::operators
