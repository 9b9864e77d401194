// The activation between both products.
#pragma once

#include "device/macros.h"
#include "device/types.h"

namespace kiln::fused_moe {

KILN_DEVICE device::f32 silu_times(device::f32 gate, device::f32 up) {
    constexpr device::f32 kLog2E = 1.44269504F;
    return gate * __builtin_amdgcn_rcpf(1.0F + __builtin_amdgcn_exp2f(-kLog2E * gate)) * up;
}

}  // namespace kiln::fused_moe
