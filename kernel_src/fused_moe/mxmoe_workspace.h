// What the kernels of mxmoe leave for each other, and how they are launched: for host and device.
#pragma once

#include "device/macros.h"
#include "device/types.h"

namespace kiln::mxmoe {

using device::u32;
using device::u64;

inline constexpr u32 kThreads = 256;  // of a work-group of the quantiser and of combine
// Of g1 and g2 four waves share out the columns, and as many again the second half of a block of 128 rows.
inline constexpr u32 kColumnWaves = 4;
KILN_HOST_DEVICE constexpr u32 tile_threads(u32 block_m) {
    return block_m > 64 ? 2 * kThreads : kThreads;
}

// Columns of 2I that a work-group of g1 computes, and of H in g2.
inline constexpr u32 kTileColumns = 256;
// Work-groups of g1 and g2; they stride over what is more.
inline constexpr u32 kMostGroups = 2048;
// Elements that a work-group of the quantiser or of combine takes at once, and how many of these at most.
inline constexpr u32 kPieceElements = 8 * kThreads;
inline constexpr u32 kMostPieceGroups = 65536;

inline constexpr u32 kGroup = 32;  // elements that share a scale
inline constexpr u32 kStep = 256;  // k that are multiplied between two barriers
inline constexpr u32 kStepBytes = kStep / 2;
inline constexpr u32 kStepGroups = kStep / kGroup;
inline constexpr u32 kStepChunks = 2;  // 128 k each: what a matrix instruction multiplies

// Blocks of sorted rows, at most: each pair in a block of its own, or every expert with one that is not full.
KILN_HOST_DEVICE constexpr u64 most_blocks(u64 pairs, u32 experts, u32 block_m) {
    return pairs <= experts ? pairs : experts + (pairs - experts) / block_m;
}

// Scales of quantised tokens, a row for each token: in a step, a lane's two groups (q and q + 4, the same of
// either chunk) lie side by side.
struct TokenScales {
    KILN_HOST_DEVICE static constexpr u64 offset(u32 token, u32 group, u32 groups) {
        return static_cast<u64>(token) * groups     // row
               + group / kStepGroups * kStepGroups  // step
               + group % 4 * kStepChunks            // quarter of a wave
               + group % kStepGroups / 4;           // chunk
    }
};

// Scales of a row of `depth` elements, up to whole steps.
KILN_HOST_DEVICE constexpr u32 whole_step_groups(u32 depth) {
    return (depth + kStep - 1) / kStep * kStepGroups;
}

// Scales of the intermediate, by sorted row, in tiles of a step of kTileRows rows: what a lane needs of a
// tile is one word. With 32 rows that is layout L3.
template <u32 kTileRows>
struct RowScales {
    static_assert(kTileRows == 16 || kTileRows == 32);
    static constexpr u32 kHalves = kTileRows / 16;            // rows, 16 apart, in a lane's word
    static constexpr u32 kLaneBytes = kStepChunks * kHalves;  // of a tile
    static constexpr u32 kTileBytes = kTileRows * kStepGroups;

    KILN_HOST_DEVICE static constexpr u64 tile_offset(u64 row, u32 groups) {
        return row / kTileRows * kTileRows * groups;
    }
    // Of a group: the tile of its step, the quarter, the chunk.
    KILN_HOST_DEVICE static constexpr u32 group_offset(u32 group) {
        return group / kStepGroups * kTileBytes + group % 4 * (16 * kLaneBytes) +
               group % kStepGroups / 4 * kHalves;
    }
    // Of a row: the lane in the quarter, the half.
    KILN_HOST_DEVICE static constexpr u32 row_offset(u64 row) {
        return static_cast<u32>(row % 16 * kLaneBytes + row % kTileRows / 16);
    }
};
KILN_HOST_DEVICE constexpr u32 scale_tile_rows(u32 block_m) {
    return block_m < 32 ? 16 : 32;
}

// A counter for each column tile of g2 where the last work-group combines; each has a cache line of its own.
inline constexpr u32 kCounterStride = 128;

// Bytes of the arrays.
struct Workspace {
    u32 hidden, intermediate, experts, slots, block_m;

    [[nodiscard]] KILN_HOST_DEVICE constexpr u64 rows(u64 tokens) const {
        return block_m * most_blocks(tokens * slots, experts, block_m);
    }
    [[nodiscard]] KILN_HOST_DEVICE constexpr u64 x_q(u64 tokens) const { return tokens * hidden / 2; }
    [[nodiscard]] KILN_HOST_DEVICE constexpr u64 x_scale(u64 tokens) const {
        return tokens * hidden / kGroup;
    }
    [[nodiscard]] KILN_HOST_DEVICE constexpr u64 h_q(u64 tokens) const {
        return rows(tokens) * intermediate / 2;
    }
    [[nodiscard]] KILN_HOST_DEVICE constexpr u64 h_scale(u64 tokens) const {
        return rows(tokens) * whole_step_groups(intermediate);
    }
    // Where the products are not added up at once.
    [[nodiscard]] KILN_HOST_DEVICE constexpr u64 v(u64 tokens) const { return tokens * slots * hidden * 2; }
    // Zero when a launch begins and when it ends.
    [[nodiscard]] KILN_HOST_DEVICE constexpr u64 counters() const {
        return u64{hidden} / kTileColumns * kCounterStride;
    }
};

}  // namespace kiln::mxmoe
