// What both kernels of the operator are given: the plan packs it once for a launch.
#pragma once

#include "device/types.h"

#define KILN_FUSED_MOE_PARAMETERS                                                                           \
    const kiln::device::bf16_bits *__restrict__ x, const kiln::device::u8 *__restrict__ w13,                \
        const void *__restrict__ w13_scale, const kiln::device::u8 *__restrict__ w2,                        \
        const void *__restrict__ w2_scale, const kiln::device::i32 *__restrict__ ids,                       \
        const kiln::device::f32 *__restrict__ weights, kiln::device::bf16_bits *__restrict__ out,           \
        kiln::device::u32 *__restrict__ flag, kiln::device::bf16_bits *__restrict__ h, kiln::device::i32 m, \
        kiln::device::i32 ldx
#define KILN_FUSED_MOE_ARGUMENTS                                                                        \
    kiln::fused_moe::Arguments {                                                                        \
        x, w13, w13_scale, w2, w2_scale, ids, weights, out, flag, h, static_cast<kiln::device::u32>(m), \
            static_cast<kiln::device::u32>(ldx)                                                         \
    }

namespace kiln::fused_moe {

using namespace kiln::device;

struct Arguments {
    const bf16_bits* __restrict__ x;
    const u8* __restrict__ w13;
    const void* __restrict__ w13_scale;
    const u8* __restrict__ w2;
    const void* __restrict__ w2_scale;
    const i32* __restrict__ ids;
    const f32* __restrict__ weights;
    bf16_bits* __restrict__ out;
    u32* __restrict__ flag;
    bf16_bits* __restrict__ h;
    u32 m;
    u32 ldx;  // elements
};

}  // namespace kiln::fused_moe
