// What every kernel of mxmoe is given: the plan packs it once for a launch.
#pragma once

#include "device/macros.h"
#include "device/types.h"

#define KILN_MXMOE_PARAMETERS                                                                              \
    const kiln::device::bf16_bits *__restrict__ x, const kiln::device::u8 *__restrict__ w13,               \
        const kiln::device::u8 *__restrict__ w13_scale, const kiln::device::u8 *__restrict__ w2,           \
        const kiln::device::u8 *__restrict__ w2_scale, const kiln::device::i32 *__restrict__ ids,          \
        const kiln::device::f32 *__restrict__ weights, kiln::device::bf16_bits *out,                       \
        kiln::device::u32 *flag, const kiln::device::i32 *__restrict__ sorted_ids,                         \
        const kiln::device::f32 *__restrict__ sorted_weights,                                              \
        const kiln::device::i32 *__restrict__ sorted_expert_ids,                                           \
        const kiln::device::i32 *__restrict__ num_valid, kiln::device::u8 *x_q, kiln::device::u8 *x_scale, \
        kiln::device::u8 *h_q, kiln::device::u8 *h_scale, kiln::device::bf16_bits *v,                      \
        kiln::device::u8 *counters, kiln::device::i32 m, kiln::device::i32 ldx
#define KILN_MXMOE_ARGUMENTS                                                                  \
    kiln::mxmoe::Arguments {                                                                  \
        x, w13, w13_scale, w2, w2_scale, ids, weights, out, flag, sorted_ids, sorted_weights, \
            sorted_expert_ids, num_valid, x_q, x_scale, h_q, h_scale, v, counters,            \
            static_cast<kiln::device::u32>(m), static_cast<kiln::device::u32>(ldx)            \
    }

namespace kiln::mxmoe {

using namespace kiln::device;

struct Arguments {
    const bf16_bits* __restrict__ x;
    const u8* __restrict__ w13;
    const u8* __restrict__ w13_scale;
    const u8* __restrict__ w2;
    const u8* __restrict__ w2_scale;
    const i32* __restrict__ ids;
    const f32* __restrict__ weights;
    bf16_bits* out;
    u32* flag;
    const i32* __restrict__ sorted_ids;
    const f32* __restrict__ sorted_weights;
    const i32* __restrict__ sorted_expert_ids;
    const i32* __restrict__ num_valid;
    u8* x_q;
    u8* x_scale;
    u8* h_q;
    u8* h_scale;
    bf16_bits* v;
    u8* counters;
    u32 m;
    u32 ldx;  // elements
};

#if defined(__HIP__)
// The kernel's arguments, read again where they are asked for: what a kernel needs only in the end does not
// take registers until then.
KILN_DEVICE Arguments arguments_again() {
    auto* memory = __builtin_amdgcn_kernarg_segment_ptr();
    asm volatile("" : "+s"(memory));
    return *(const Arguments*)memory;  // to the address space of all memory, which no other cast does
}
#endif

// What moe_sort says of a row: (slot << 24) | token, a token of m for a row without a pair.
struct SortedRow {
    u32 entry;

    KILN_DEVICE explicit SortedRow(u32 of_sort) : entry(of_sort) {}
    KILN_DEVICE u32 token() const { return entry & 0xffffffU; }
    KILN_DEVICE u32 slot() const { return entry >> 24; }
};

}  // namespace kiln::mxmoe
