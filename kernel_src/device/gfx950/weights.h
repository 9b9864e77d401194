// Preshuffled weights as the lanes of a wave read them.
#pragma once

#include "device/gfx950/fragment.h"
#include "device/gfx950/vectors.h"
#include "device/layout.h"
#include "device/macros.h"
#include "device/types.h"

namespace kiln::device {

// A wave that reads 16 bytes a lane at lane * 16 gets whole chunks of an Fp8Fragment, one after the other.
struct WeightChunks {
    static constexpr int kChunkBytes = kWaveLanes * PreshuffledWeights::kPieceBytes;
    static constexpr int kFragmentBytes = Fp8Fragment::kChunks * kChunkBytes;
    KILN_DEVICE static constexpr u32 lane_offset(u32 lane) { return lane * PreshuffledWeights::kPieceBytes; }
    KILN_DEVICE static constexpr u32 chunk_offset(u32 k_block, u32 chunk) {
        return k_block * kFragmentBytes + chunk * kChunkBytes;
    }
};

}  // namespace kiln::device
