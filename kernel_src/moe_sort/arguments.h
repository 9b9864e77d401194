// What every kernel of the operator is given, and how it speaks of pairs and rows.
#pragma once

#include "constants.h"
#include "device/types.h"
#include "moe_sort/launch.h"

// Explicit arguments, the same for all kernels: the plan packs them once for a launch.
#define KILN_MOE_SORT_PARAMETERS                                                                             \
    const kiln::device::i32 *ids, const kiln::device::f32 *weights, const kiln::device::bf16_bits *x,        \
        kiln::device::i32 *sorted_ids, kiln::device::f32 *sorted_weights,                                    \
        kiln::device::i32 *sorted_expert_ids, kiln::device::i32 *num_valid, kiln::device::u8 *moe_buf,       \
        kiln::device::u8 *q, kiln::device::u8 *q_scale, kiln::device::u8 *zeroed, kiln::device::u8 *scratch, \
        kiln::device::i32 m, kiln::device::i32 ldx
#define KILN_MOE_SORT_ARGUMENTS                                                                         \
    kiln::moe_sort::Arguments {                                                                         \
        ids, weights, x, sorted_ids, sorted_weights, sorted_expert_ids, num_valid, moe_buf, q, q_scale, \
            zeroed, scratch, static_cast<kiln::device::u32>(m), static_cast<kiln::device::u32>(ldx)     \
    }

namespace kiln::moe_sort {

using namespace kiln::device;
using namespace kiln::constants;

struct Arguments {
    const i32* ids;
    const f32* weights;
    const bf16_bits* x;
    i32* sorted_ids;
    f32* sorted_weights;
    i32* sorted_expert_ids;
    i32* num_valid;
    u8* moe_buf;
    u8* q;
    u8* q_scale;
    u8* zeroed;
    u8* scratch;
    u32 m;
    u32 ldx;  // elements
};

static_assert(kBlockM == 16 || kBlockM == 32 || kBlockM == 64 || kBlockM == 128, "a block of rows");
static_assert(kExperts >= 1 && kExperts <= 1024 && kSlots >= 1 && kSlots <= 16, "what an entry can say");

// What is found for a pair whose id is no expert's: it is left out.
inline constexpr u32 kNoExpert = ~0U;
inline constexpr u32 kNoRow = ~0U;

// Of a pair, numbered as it lies in ids.
KILN_DEVICE u32 expert_of(const Arguments& arguments, u32 pair, u32 pairs) {
    const u32 id = pair < pairs ? static_cast<u32>(arguments.ids[pair]) : kNoExpert;
    return id < kExperts ? id : kNoExpert;
}

constexpr int expert_bits() {
    int bits = 0;
    while ((1 << bits) < kExperts) {
        ++bits;
    }
    return bits;
}

// What a row of the result says: (slot << 24) | token, and for a row without a pair (slots << 24) | m.
KILN_DEVICE i32 entry_of(u32 pair) {
    return static_cast<i32>(pair % kSlots << 24 | pair / kSlots);
}
KILN_DEVICE i32 padding_entry(u32 m) {
    return static_cast<i32>(static_cast<u32>(kSlots) << 24 | m);
}

KILN_DEVICE void write_row(const Arguments& arguments, u32 row, i32 entry, f32 weight) {
    arguments.sorted_ids[row] = entry;
    arguments.sorted_weights[row] = weight;
}
KILN_DEVICE void write_num_valid(const Arguments& arguments, u32 blocks) {
    arguments.num_valid[0] = static_cast<i32>(blocks * kBlockM);
    arguments.num_valid[1] = static_cast<i32>(arguments.m);
}

}  // namespace kiln::moe_sort
