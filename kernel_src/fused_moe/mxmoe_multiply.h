// Weights times the rows of a block along k: the inner loop of both products.
//
// A wave has four tiles of 16 rows of weights as A, which it alone reads, straight from memory to registers;
// the rows of the block are B, which all waves of the work-group read from LDS. Steps of 256 k: while one is
// multiplied, the rows of the next are stored to LDS, and those that follow are on their way.
#pragma once

#include "constants.h"
#include "device/gfx950/memory.h"
#include "device/gfx950/mfma.h"
#include "device/gfx950/vectors.h"
#include "device/indices.h"
#include "device/layout.h"
#include "device/macros.h"
#include "device/types.h"
#include "fused_moe/mxmoe_rows.h"
#include "fused_moe/mxmoe_tile.h"
#include "fused_moe/mxmoe_workspace.h"

namespace kiln::mxmoe {

inline constexpr int kWeightTiles = 4;  // of a wave
inline constexpr int kWeightPairs = 2;  // of tiles that lie one after the other, and share words of scales

// Waves that registers leave room for, at least.
inline constexpr int kWavesOfSimd = kTokenTiles <= 2 ? 3 : 2;

// Sums of a tile of rows and a tile of weights.
using Sums = f32x4[kTokenTiles][kWeightTiles];

// An expert's matrix of `kDepth` k, in layouts L1 and L3, and the rows of it that a wave multiplies: 32 from
// each of two on, multiples of 32.
template <u32 kDepth>
class WaveWeights {
  public:
    struct Step {
        u32x4 codes[kStepChunks][kWeightTiles];
        u32 scales[kWeightPairs];
    };

    KILN_DEVICE WaveWeights(const u8* codes, const u8* scales, u32 expert, u32 rows, u32 first, u32 second,
                            u32 lane)
        : codes_(codes + static_cast<u64>(expert) * rows * kRowBytes, rows * kRowBytes),
          scales_(scales + static_cast<u64>(expert) * rows * kGroups, rows * kGroups),
          first_{first, second},
          lane_(lane) {}

    KILN_DEVICE void load(Step& to, u32 step, u32 chunk) const {
        constexpr u32 kChunkBytes = kStepBytes / kStepChunks * kFragmentRows;
#pragma unroll
        for (int tile = 0; tile < kWeightTiles; ++tile) {
            const u32 row = first_[tile / 2] + tile % 2 * kFragmentRows;
            const u32 in_lane = lane_ * PreshuffledWeights::kPieceBytes + chunk * kChunkBytes;
            const u32 in_wave = row * kRowBytes + step * (kStepChunks * kChunkBytes);
            to.codes[chunk][tile] =
                kNonTemporal ? codes_.load_streaming_16(in_lane, in_wave) : codes_.load_16(in_lane, in_wave);
        }
    }
    KILN_DEVICE void load_scales(Step& to, u32 step) const {
        constexpr u32 kTileBytes = PreshuffledScales::kTileRows * PreshuffledScales::kTileGroups;
#pragma unroll
        for (int pair = 0; pair < kWeightPairs; ++pair) {
            to.scales[pair] = scales_.load_4(lane_ * static_cast<u32>(sizeof(u32)),
                                             first_[pair] * kGroups + step * kTileBytes);
        }
    }

  private:
    static constexpr u32 kRowBytes = kDepth / 2;
    static constexpr u32 kGroups = kDepth / kGroup;
    static_assert(kDepth % kStep == 0, "k consists of whole steps");
    static_assert(kStepGroups == PreshuffledScales::kTileGroups);

    Buffer codes_;
    Buffer scales_;
    u32 first_[kWeightPairs];
    u32 lane_;
};

// They are computed now and in this order, not where they are asked for: that would keep the operands of many
// products in registers.
KILN_DEVICE void settle(f32x4 (&sums)[kWeightTiles]) {
#pragma unroll
    for (int f = 0; f < kWeightTiles; ++f) {
        asm volatile("" : "+v"(sums[f]));
    }
}

// The same value. What follows from it is computed where it is used, not kept in registers from before the
// loop on.
KILN_DEVICE u32 recomputed(u32 value) {
    asm volatile("" : "+v"(value));
    return value;
}
// Of a value that is the same for all lanes: scalar registers are few as well.
KILN_DEVICE u32 recomputed_scalar(u32 value) {
    asm volatile("" : "+s"(value));
    return value;
}

// Which part of a work-group's tile is a wave's.
struct WavePart {
    u32 column_wave;  // of kColumnWaves
    u32 first_tile;   // of 16 rows

    KILN_DEVICE explicit WavePart(u32 wave)
        : column_wave(wave % kColumnWaves), first_tile(wave / kColumnWaves * kTokenTiles) {}
};

// All of k, for the tiles of rows from `first_tile` on. `tiles` is LDS, which no wave reads or writes any
// more when this begins; some may still read it when this ends.
template <u32 kDepth, class Rows>
KILN_DEVICE void multiply(const WaveWeights<kDepth>& weights, const Rows& rows,
                          typename Rows::Tile (&tiles)[2], u32 first_tile, u32 lane, Sums& sums) {
    constexpr int kSteps = kDepth / kStep;
    constexpr int kAhead = 2;  // steps that weights are asked for ahead
    typename WaveWeights<kDepth>::Step w[kAhead];
    typename Rows::Scales scales[kAhead];
    typename Rows::Staged staged[kAhead];

    // Loads return in the order in which they are asked for. What is stored to LDS in a step is asked for
    // before the weights of that step, so that nobody waits for more than is needed.
    typename Rows::Staged first;
    rows.load(first, 0);
    for_each_index<kAhead>([&](auto ahead) {
        constexpr int n = decltype(ahead)::value;
        if constexpr (n < kSteps) {
            if constexpr (n + 1 < kSteps) {
                rows.load(staged[(n + 1) % kAhead], n + 1);
            }
            rows.load_scales(scales[n], n, first_tile);
            weights.load_scales(w[n], n);
            weights.load(w[n], n, 0);
            weights.load(w[n], n, 1);
        }
    });
    rows.store(first, tiles[0]);
#pragma unroll
    for (int tile = 0; tile < kTokenTiles; ++tile) {
#pragma unroll
        for (int f = 0; f < kWeightTiles; ++f) {
            sums[tile][f] = f32x4{};
        }
    }
    __syncthreads();

    // kPlace: the step's, modulo 2. The last steps have less to ask for.
    const auto multiply_step = [&](auto place, auto later_steps, u32 number) {
        const u32 step = recomputed_scalar(number);
        constexpr int kPlace = decltype(place)::value;
        constexpr int kLater = decltype(later_steps)::value;  // steps that follow, up to kAhead + 1
        constexpr int kSlot = kPlace % kAhead, kNextSlot = (kPlace + 1) % kAhead;
        if constexpr (kLater >= 1) {
            rows.store(staged[kNextSlot], tiles[1 - kPlace]);
        }
        if constexpr (kLater >= kAhead + 1) {
            rows.load(staged[kNextSlot], step + kAhead + 1);
        }
        const typename Rows::Tile& tile_in_lds = tiles[kPlace];
        for_each_index<kStepChunks>([&](auto chunk_index) {
            constexpr int kChunk = decltype(chunk_index)::value;
            for_each_index<kTokenTiles>([&](auto tile_index) {
                constexpr int kTile = decltype(tile_index)::value;
                const u32x4 b = *reinterpret_cast<const u32x4*>(
                    tile_in_lds.codes + TileLayout::operand_offset(lane, kChunk) +
                    (first_tile + kTile) * TileLayout::kOperandTileBytes);
                const u32 scale = rows.scale(scales[kSlot], tile_in_lds, first_tile, kTile, lane);
                for_each_index<kWeightTiles>([&](auto weight_index) {
                    constexpr int f = decltype(weight_index)::value;
                    // Bytes of a word: two of each chunk where it is for two tiles.
                    constexpr int kScaleA = kChunk * 2 + f % 2;
                    constexpr int kScaleB = kChunk * Rows::kScaleTiles + kTile % Rows::kScaleTiles;
                    sums[kTile][f] = mfma_16x16x128_e2m1<kScaleA, kScaleB>(
                        w[kSlot].codes[kChunk][f], w[kSlot].scales[f / 2], b, scale, sums[kTile][f]);
                });
                settle(sums[kTile]);
            });
            if constexpr (kLater >= kAhead) {
                if constexpr (kChunk == kStepChunks - 1) {
                    rows.load_scales(scales[kSlot], step + kAhead, first_tile);
                    weights.load_scales(w[kSlot], step + kAhead);
                }
                weights.load(w[kSlot], step + kAhead, kChunk);
            }
        });
        if constexpr (kLater >= 1) {
            __syncthreads();
        }
    };
    constexpr int kLoops = kSteps > kAhead + 1 ? (kSteps - (kAhead + 1)) / 2 : 0;
#pragma unroll 1
    for (u32 loop = 0; loop < kLoops; ++loop) {
        multiply_step(Index<0>{}, Index<kAhead + 1>{}, 2 * loop);
        multiply_step(Index<1>{}, Index<kAhead + 1>{}, 2 * loop + 1);
    }
    for_each_index<kSteps - 2 * kLoops>([&](auto rest) {
        constexpr int n = decltype(rest)::value;
        constexpr int kLater = kSteps - 2 * kLoops - 1 - n;
        multiply_step(Index<n % 2>{}, Index<(kLater < kAhead + 1 ? kLater : kAhead + 1)>{}, 2 * kLoops + n);
    });
}

}  // namespace kiln::mxmoe
