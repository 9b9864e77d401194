// The sum over a token's slots, of rows that were stored one by one: out = bf16(sum of weight * v), in the
// order of the slots.
#pragma once

#include "constants.h"
#include "device/gfx950/convert.h"
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
KILN_DEVICE void combine(const Arguments& arguments, u32 token, u32 column) {
    constexpr u32 kRowBytes = kHidden * sizeof(bf16_bits);
    const u64 first_pair = static_cast<u64>(token) * kSlots;
    const Buffer rows(arguments.v + first_pair * kHidden, kSlots * kRowBytes);
    u32x2 values[kSlots];
    f32 weights[kSlots];
#pragma unroll
    for (u32 slot = 0; slot < kSlots; ++slot) {
        const bool is_there = is_expert<kExperts>(arguments.ids[first_pair + slot]);
        values[slot] = rows.load_8(is_there ? column * static_cast<u32>(sizeof(bf16_bits)) : Buffer::kNowhere,
                                   slot * kRowBytes);
        weights[slot] = is_there ? arguments.weights[first_pair + slot] : 0.0F;
    }
    f32x4 sum = {};
#pragma unroll
    for (u32 slot = 0; slot < kSlots; ++slot) {
        const u32x2 packed = values[slot];
        const f32x4 row = {bits_as<f32>(packed.x << 16), bits_as<f32>(packed.x & 0xffff0000U),
                           bits_as<f32>(packed.y << 16), bits_as<f32>(packed.y & 0xffff0000U)};
        sum += row * weights[slot];
    }
    *reinterpret_cast<u32x2*>(arguments.out + static_cast<u64>(token) * kHidden + column) =
        u32x2{pack_bf16(sum.x, sum.y), pack_bf16(sum.z, sum.w)};
}

// 256 columns of every token, by a work-group.
KILN_DEVICE void combine_columns(const Arguments& arguments, u32 first_column, u32 wave, u32 lane) {
    for (u32 token = wave; token < arguments.m; token += kWaves) {
        combine(arguments, token, first_column + lane * 4);
    }
}

}  // namespace kiln::mxmoe
