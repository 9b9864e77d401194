// What is done for each token whatever its experts are: its row of moe_buf is zeroed, and with the quantiser
// its elements are written as fp8, with a copy of their scales for each of its rows of the result.
//
// A piece of a token is what a work-group does at once, 8 elements a lane.
#pragma once

#include "device/gfx950/mx_quantise.h"
#include "device/gfx950/vectors.h"
#include "device/layout.h"
#include "moe_sort/arguments.h"

namespace kiln::moe_sort {

static_assert(kPieceElements == kThreads * kMxLaneElements);
// Of a token. Without moe_buf there are no pieces to do, but Piece divides by it.
inline constexpr u32 kPieces = kHidden == 0 ? 1 : (kHidden + kPieceElements - 1) / kPieceElements;
static_assert(kHidden % kMxLaneElements == 0, "16 bytes a lane");
static_assert(!kQuantised || (kHidden > 0 && kHidden % kPieceElements == 0),
              "the quantiser takes whole pieces");

struct Piece {
    u32 token;
    u32 column;  // this lane's first

    KILN_DEVICE Piece(u32 number, u32 thread)
        : token(number / kPieces), column(number % kPieces * kPieceElements + thread * kMxLaneElements) {}
};

KILN_DEVICE void zero(const Arguments& arguments, const Piece& piece) {
    if (kHidden % kPieceElements == 0 || piece.column < kHidden) {
        const u64 element = static_cast<u64>(piece.token) * kHidden + piece.column;
        *reinterpret_cast<u32x4*>(arguments.moe_buf + element * sizeof(bf16_bits)) = u32x4{};
    }
}

KILN_DEVICE u32x4 load(const Arguments& arguments, const Piece& piece) {
    const u64 element = static_cast<u64>(piece.token) * arguments.ldx + piece.column;
    return *reinterpret_cast<const u32x4*>(arguments.x + element);
}

// `row_of_slot(slot)` is the row of the token's pair in the result, or kNoRow.
template <class RowOfSlot>
KILN_DEVICE void quantise(const Arguments& arguments, const Piece& piece, u32x4 elements,
                          RowOfSlot row_of_slot) {
    const u32 scale = mx_scale_e4m3(elements);
    const u64 element = static_cast<u64>(piece.token) * kHidden + piece.column;
    *reinterpret_cast<u32x2*>(arguments.q + element) = mx_pack_e4m3(elements, scale);

    // The four lanes of a group know its scale: each writes it for every fourth slot.
    constexpr u32 kGroupLanes = kMxGroup / kMxLaneElements;
    constexpr u32 kGroups = kHidden / kMxGroup;
    const u32 group_offset = PreshuffledScales::group_offset(piece.column / kMxGroup);
#pragma unroll
    for (u32 first = 0; first < kSlots; first += kGroupLanes) {
        const u32 slot = first + threadIdx.x % kGroupLanes;
        const u32 row = row_of_slot(slot < kSlots ? slot : 0);
        if (slot < kSlots && row != kNoRow) {
            arguments.q_scale[PreshuffledScales::row_offset(row, kGroups) + group_offset] =
                static_cast<u8>(scale);
        }
    }
}

}  // namespace kiln::moe_sort
