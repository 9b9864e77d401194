// Which lane holds what of a matrix instruction's operands: each map is one constexpr function, used by
// loaders, epilogues and the host tests. A wave's lane is (quarter q = lane / 16, r = lane % 16).
#pragma once

#include "device/gfx950/vectors.h"
#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

inline constexpr int kFragmentRows = 16;

KILN_DEVICE constexpr int lane_quarter(int lane) {
    return lane / kFragmentRows;
}
KILN_DEVICE constexpr int lane_in_quarter(int lane) {
    return lane % kFragmentRows;
}

// An fp8 operand of the 16x16x128 instruction: A is 16 rows by 128 k, B is 128 k by 16 columns; both are laid
// out alike. A lane's 32 bytes are two chunks of 16 consecutive k, 64 apart.
struct Fp8Fragment {
    static constexpr int kRows = kFragmentRows;
    static constexpr int kDepth = 128;
    static constexpr int kChunks = 2;
    static constexpr int kChunkBytes = 16;
    static constexpr int kChunkDepth = kDepth / kChunks;
    static constexpr int kBytesPerLane = kChunks * kChunkBytes;
    static constexpr int kRegisters = kBytesPerLane / 4;
    static_assert(kBytesPerLane * kWaveLanes == kRows * kDepth, "a fragment is exactly what a wave holds");

    // Row of A, or column of B.
    KILN_DEVICE static constexpr int row(int lane) { return lane_in_quarter(lane); }
    // Where a lane's bytes of `chunk` begin.
    KILN_DEVICE static constexpr int chunk_k(int lane, int chunk) {
        return chunk * kChunkDepth + lane_quarter(lane) * kChunkBytes;
    }
    // `byte` counts from register 0, little endian.
    KILN_DEVICE static constexpr int k(int lane, int byte) {
        return chunk_k(lane, byte / kChunkBytes) + byte % kChunkBytes;
    }
};

// An e2m1 operand of the 16x16x128 instruction: A is 16 rows by 128 k, B is 128 k by 16 columns; both are
// laid out alike. A lane's 16 bytes are 32 consecutive k, low nibble first, and these share a scale: the
// lane's own.
struct Fp4Fragment {
    static constexpr int kRows = kFragmentRows;
    static constexpr int kDepth = 128;
    static constexpr int kBytesPerLane = 16;
    static constexpr int kLaneDepth = 2 * kBytesPerLane;
    static_assert(kLaneDepth * kWaveLanes == kRows * kDepth, "a fragment is exactly what a wave holds");

    // Row of A, or column of B.
    KILN_DEVICE static constexpr int row(int lane) { return lane_in_quarter(lane); }
    // Where a lane's elements begin.
    KILN_DEVICE static constexpr int k(int lane) { return lane_quarter(lane) * kLaneDepth; }
};

// The float32 accumulator of a 16x16 instruction, four registers a lane.
struct AccumulatorFragment {
    static constexpr int kRegisters = 4;
    static_assert(kRegisters * kWaveLanes == kFragmentRows * kFragmentRows);

    KILN_DEVICE static constexpr int row(int lane, int reg) { return lane_quarter(lane) * kRegisters + reg; }
    KILN_DEVICE static constexpr int column(int lane) { return lane_in_quarter(lane); }
};

// A bf16 operand of the 16x16x32 instruction: A is 16 rows by 32 k, B is 32 k by 16 columns; both are laid
// out alike. Which k a lane's eight elements are is free as long as A and B agree.
struct Bf16Fragment {
    static constexpr int kRows = kFragmentRows;
    static constexpr int kDepth = 32;
    static constexpr int kElements = 8;  // of a lane
    static_assert(kElements * kWaveLanes == kRows * kDepth, "a fragment is exactly what a wave holds");

    // Row of A, or column of B.
    KILN_DEVICE static constexpr int row(int lane) { return lane_in_quarter(lane); }
};

// The 4x4x4 bf16 instruction: 16 independent products of 4x4 matrices, lane l working for block l / 4. A lane
// holds a row of A and a column of B, four k each, and a column of the result, four rows.
struct QuadFragment {
    static constexpr int kSide = 4;
    static constexpr int kBlocks = kWaveLanes / kSide;

    KILN_DEVICE static constexpr int block(int lane) { return lane / kSide; }
    KILN_DEVICE static constexpr int row(int lane) {
        return lane % kSide;
    }  // of A; column of B and of the result
    // A lane's row of the identity as A, as four packed bf16.
    KILN_DEVICE static constexpr u64 identity_row(int lane) {
        constexpr u64 kOne = 0x3f80;
        return kOne << (16 * row(lane));
    }
};

// Tokens of one 16 x 128 piece of bf16 activations, on their way to become an Fp8Fragment. With kLaneRows
// tokens on the 16 lanes of a quarter, 16 / kLaneRows lanes share one token; lane r works on token r %
// kLaneRows, and on the elements that register pair `share` of the fragment needs, share = r / kLaneRows.
template <int kLaneRows>
struct TokenSlice {
    static_assert(kLaneRows == 16 || kLaneRows == 8 || kLaneRows == 4,
                  "16, 8 or 4 tokens fit the lanes of a quarter");
    static constexpr int kSharers = kFragmentRows / kLaneRows;
    static constexpr int kElements = Fp8Fragment::kBytesPerLane / kSharers;  // of one lane
    static constexpr int kLoadElements = 8;                                  // bf16 in 16 bytes
    static constexpr int kLoads = kElements / kLoadElements;
    static constexpr int kDwords = kElements / 2;     // packed bf16
    static constexpr int kRegisters = kElements / 4;  // packed fp8

    KILN_DEVICE static constexpr int token(int lane) { return lane_in_quarter(lane) % kLaneRows; }
    KILN_DEVICE static constexpr int share(int lane) { return lane_in_quarter(lane) / kLaneRows; }
    // The k of a lane's element.
    KILN_DEVICE static constexpr int k(int lane, int element) {
        return Fp8Fragment::k(lane, share(lane) * kElements + element);
    }
    // Where a load begins, from the lane's first k on: the same for every lane.
    KILN_DEVICE static constexpr int load_k(int load) { return k(0, load * kLoadElements) - k(0, 0); }
};

}  // namespace kiln::device
