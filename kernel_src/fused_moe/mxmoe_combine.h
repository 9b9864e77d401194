// The sum over a token's slots, of rows that were stored one by one: out = bf16(sum of weight * v), in the
// order of the slots.
#pragma once

#include "constants.h"
#include "device/gfx950/convert.h"
#include "device/gfx950/cross_lane.h"
#include "device/gfx950/expert_table.h"
#include "device/gfx950/memory.h"
#include "device/gfx950/vectors.h"
#include "device/macros.h"
#include "device/types.h"
#include "fused_moe/mxmoe_arguments.h"
#include "fused_moe/mxmoe_workspace.h"

namespace kiln::mxmoe {

using namespace kiln::constants;

// A lane's four columns of a token, which is the same for all lanes. Slots whose id is no expert's have no
// row, and their weight may be anything.
KILN_DEVICE void combine(const Arguments& arguments, u32 token, u32 column, u32 lane) {
    constexpr u32 kRowBytes = kHidden * sizeof(bf16_bits);
    const u64 first_pair = static_cast<u64>(token) * kSlots;
    const Buffer rows(arguments.v + first_pair * kHidden, kSlots * kRowBytes);
    // Lane i knows slot i.
    const u64 pair = first_pair + (lane < kSlots ? lane : 0);
    const bool is_there = is_expert<kExperts>(arguments.ids[pair]);
    const u32 weight = is_there ? bits_as<u32>(arguments.weights[pair]) : 0;
    const u32 missing = ~static_cast<u32>(lanes_where(is_there));
    static_assert(Buffer::kNowhere == 1U << 31);
    u32x2 values[kSlots];
#pragma unroll
    for (u32 slot = 0; slot < kSlots; ++slot) {
        const u32 nowhere = missing << (31 - slot) & Buffer::kNowhere;
        values[slot] =
            rows.load_8((column * static_cast<u32>(sizeof(bf16_bits)) + slot * kRowBytes) | nowhere, 0);
    }
    f32x4 sum = {};
#pragma unroll
    for (u32 slot = 0; slot < kSlots; ++slot) {
        const u32x2 packed = values[slot];
        const f32x4 row = {bits_as<f32>(packed.x << 16), bits_as<f32>(packed.x & 0xffff0000U),
                           bits_as<f32>(packed.y << 16), bits_as<f32>(packed.y & 0xffff0000U)};
        sum += row * bits_as<f32>(read_lane(weight, slot));
    }
    *reinterpret_cast<u32x2*>(arguments.out + static_cast<u64>(token) * kHidden + column) =
        u32x2{pack_bf16(sum.x, sum.y), pack_bf16(sum.z, sum.w)};
}

// 256 columns of every token, by the waves of a work-group.
template <u32 kTogether>
KILN_DEVICE void combine_columns(const Arguments& arguments, u32 first_column, u32 wave, u32 lane) {
    for (u32 token = wave; token < arguments.m; token += kTogether) {
        combine(arguments, token, first_column + lane * 4, lane);
    }
}

}  // namespace kiln::mxmoe
