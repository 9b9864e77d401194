// Where the rows of a block come from: operand B of both products. Each source loads a step of its rows into
// registers, and stores it to LDS for all waves of the work-group.
#pragma once

#include "constants.h"
#include "device/gfx950/cross_lane.h"
#include "device/gfx950/fragment.h"
#include "device/gfx950/memory.h"
#include "device/gfx950/mx_quantise.h"
#include "device/gfx950/vectors.h"
#include "device/macros.h"
#include "device/types.h"
#include "fused_moe/mxmoe_arguments.h"
#include "fused_moe/mxmoe_tile.h"
#include "fused_moe/mxmoe_workspace.h"

namespace kiln::mxmoe {

using namespace kiln::constants;

inline constexpr u32 kTileThreads = tile_threads(kBlockM);
inline constexpr u32 kTileWaves = kTileThreads / kWaveLanes;
// Tiles of 16 rows that a wave multiplies.
inline constexpr int kTokenTiles = kBlockM / kFragmentRows / (kTileWaves / kColumnWaves);
static_assert(kBlockM == 16 || kBlockM == 32 || kBlockM == 64 || kBlockM == 128, "a block of rows");

// Two of a step's tiles are in LDS: one is read, one written.
struct Tile {
    u8 codes[kBlockM * kStepBytes] __attribute__((aligned(16)));
};
// With the scales of tokens, as TokenScales has them in a step: a lane's, of both chunks, side by side. There
// is room for a dword of every thread, so that those without a scale need no case of their own.
struct ScaledTile : Tile {
    u32 scales[kTileThreads];
    static constexpr u32 kRowWords = kStepGroups / sizeof(u32);
    static_assert(kBlockM * kRowWords <= kTileThreads);

    KILN_DEVICE u32 scale(u32 tile, u32 lane) const {
        const u32 row = tile * kFragmentRows + lane % kFragmentRows;
        return reinterpret_cast<const u16*>(scales + row * kRowWords)[lane / kFragmentRows];
    }
};

// Rows that are e2m1 in memory. A thread loads pieces of 16 bytes; eight threads have a row.
struct CodedRows {
    static constexpr u32 kRowThreads = TileLayout::kRowPieces;
    static constexpr u32 kRowsTogether = kTileThreads / kRowThreads;
    static constexpr int kLoads = kBlockM < kRowsTogether ? 1 : kBlockM / kRowsTogether;
    // With 16 rows, half of the threads have none.
    static constexpr bool kAllThreads = kBlockM >= kRowsTogether;

    struct Staged {
        u32x4 codes[kLoads];
    };

    KILN_DEVICE static u32 row_of_thread() { return threadIdx.x / kRowThreads; }
    KILN_DEVICE static bool has_row() { return kAllThreads || row_of_thread() < kBlockM; }
    KILN_DEVICE static u32 piece_offset() { return threadIdx.x % kRowThreads * TileLayout::kPieceBytes; }
    KILN_DEVICE static void store(const Staged& staged, Tile& tile) {
        if (has_row()) {
            const u32 offset = TileLayout::offset(row_of_thread(), threadIdx.x % kRowThreads);
#pragma unroll
            for (int i = 0; i < kLoads; ++i) {
                *reinterpret_cast<u32x4*>(tile.codes + offset + i * (kRowsTogether * kStepBytes)) =
                    staged.codes[i];
            }
        }
    }
};

// The token of a row, and where the row of a matrix with such rows begins: nowhere, past its end, for a row
// without a pair.
struct TokenOffset {
    u32 token;
    bool is_pair;

    KILN_DEVICE TokenOffset(const Arguments& arguments, u32 row)
        : token(SortedRow(static_cast<u32>(arguments.sorted_ids[row])).token()),
          is_pair(token < arguments.m) {}
    KILN_DEVICE u32 operator()(u32 row_bytes, u32 in_row) const {
        return is_pair ? token * row_bytes + in_row : Buffer::kNowhere;
    }
};

// Quantised tokens, gathered. Each thread also has some of a row's scales.
class TokenRows : public CodedRows {
  public:
    static constexpr int kScaleTiles = 1;  // tiles of rows that a word of scales is for
    using Tile = ScaledTile;
    struct Staged : CodedRows::Staged {
        u32 scales;
    };
    struct Scales {};  // these lie in LDS

    KILN_DEVICE TokenRows(const Arguments& arguments, u32 first_row, u32)
        : codes_(arguments.x_q, arguments.m * kRowBytes), scales_(arguments.x_scale, arguments.m * kGroups) {
#pragma unroll
        for (int i = 0; i < kLoads; ++i) {
            const u32 row = row_of_thread() + i * kRowsTogether;
            offsets_[i] = has_row() ? TokenOffset(arguments, first_row + row)(kRowBytes, piece_offset())
                                    : Buffer::kNowhere;
        }
        const u32 row = threadIdx.x / Tile::kRowWords;
        scale_offset_ = row < kBlockM
                            ? TokenOffset(arguments, first_row + row)(
                                  kGroups, threadIdx.x % Tile::kRowWords * static_cast<u32>(sizeof(u32)))
                            : Buffer::kNowhere;
    }
    KILN_DEVICE void load(Staged& staged, u32 step) const {
#pragma unroll
        for (int i = 0; i < kLoads; ++i) {
            staged.codes[i] = codes_.load_16(offsets_[i], step * kStepBytes);
        }
        staged.scales = scales_.load_4(scale_offset_, step * kStepGroups);
    }
    KILN_DEVICE static void store(const Staged& staged, Tile& tile) {
        CodedRows::store(staged, tile);
        tile.scales[threadIdx.x] = staged.scales;
    }
    KILN_DEVICE void load_scales(Scales&, u32, u32) const {}
    KILN_DEVICE u32 scale(const Scales&, const Tile& tile, u32 first, int number, u32 lane) const {
        return tile.scale(first + number, lane);
    }

  private:
    static constexpr u32 kRowBytes = kHidden / 2;
    static constexpr u32 kGroups = kHidden / kGroup;

    Buffer codes_;
    Buffer scales_;
    u32 offsets_[kLoads];
    u32 scale_offset_;
};

// Tokens as bf16, gathered, quantised on the way to LDS. A thread has eight elements of each chunk of a row,
// four neighbours a group.
class QuantisingRows {
  public:
    static constexpr int kScaleTiles = 1;
    static constexpr u32 kRows = 16;
    using Tile = ScaledTile;
    struct Staged {
        u32x4 elements[kStepChunks];
    };
    struct Scales {};  // these lie in LDS

    KILN_DEVICE QuantisingRows(const Arguments& arguments, u32 first_row, u32 lane)
        : x_(arguments.x, ((arguments.m - 1) * arguments.ldx + kHidden) * sizeof(bf16_bits)),
          row_(row_of(threadIdx.x)),
          offset_(TokenOffset(arguments, first_row + row_)(
              arguments.ldx * static_cast<u32>(sizeof(bf16_bits)),
              lane % kRowLanes * kMxLaneElements * static_cast<u32>(sizeof(bf16_bits)))) {}

    KILN_DEVICE void load(Staged& staged, u32 step) const {
#pragma unroll
        for (u32 chunk = 0; chunk < kStepChunks; ++chunk) {
            staged.elements[chunk] = x_.load_16(offset_ + chunk * (Fp4Fragment::kDepth * sizeof(bf16_bits)),
                                                step * (kStep * static_cast<u32>(sizeof(bf16_bits))));
        }
    }
    KILN_DEVICE void store(const Staged& staged, Tile& tile) const {
        const u32 lane = threadIdx.x % kRowLanes;
        u32 scales = 0;
#pragma unroll
        for (u32 chunk = 0; chunk < kStepChunks; ++chunk) {
            const u32 scale = mx_scale_e2m1(mx_amax(staged.elements[chunk]));
            scales |= scale << 8 * chunk;
            constexpr u32 kPieceLanes = kMxGroup / kMxLaneElements;
            *reinterpret_cast<u32*>(tile.codes + TileLayout::offset(row_, chunk * 4 + lane / kPieceLanes) +
                                    lane % kPieceLanes * static_cast<u32>(sizeof(u32))) =
                mx_pack_e2m1(staged.elements[chunk], scale);
        }
        // A dword has the scales of two quarters: eight neighbours.
        const u32 word = scales | rotate_in_quarter<4>(scales) << 16;
        if (lane % 8 == 0) {
            tile.scales[row_ * Tile::kRowWords + lane / 8] = word;
        }
    }
    KILN_DEVICE void load_scales(Scales&, u32, u32) const {}
    KILN_DEVICE u32 scale(const Scales&, const Tile& tile, u32 first, int number, u32 lane) const {
        return tile.scale(first + number, lane);
    }

  private:
    static constexpr u32 kRowLanes = kStep / kStepChunks / kMxLaneElements;
    static_assert(kRowLanes == 16 && kRows * kRowLanes == kThreads);
    // Pieces of rows that are eight apart lie in different banks, so that neither half of a wave meets
    // itself.
    KILN_DEVICE static u32 row_of(u32 thread) {
        const u32 quarter = thread / kRowLanes % 4;
        return thread / kWaveLanes * 2 + quarter / 2 + quarter % 2 * 8;
    }

    Buffer x_;
    u32 row_;
    u32 offset_;
};

// Rows of the intermediate, which lie side by side.
class IntermediateRows : public CodedRows {
  public:
    using Tile = mxmoe::Tile;
    using Layout = RowScales<scale_tile_rows(kBlockM)>;
    static constexpr int kScaleTiles = Layout::kHalves;
    struct Scales {
        u32 of[kTokenTiles / kScaleTiles];
    };

    KILN_DEVICE IntermediateRows(const Arguments& arguments, u32 first_row, u32 lane)
        : codes_(arguments.h_q + static_cast<u64>(first_row) * kRowBytes, kBlockM * kRowBytes),
          scales_(arguments.h_scale + static_cast<u64>(first_row) * kGroups, kBlockM * kGroups),
          offset_(has_row() ? row_of_thread() * kRowBytes + piece_offset() : Buffer::kNowhere),
          scale_offset_(lane * Layout::kLaneBytes) {}

    KILN_DEVICE void load(Staged& staged, u32 step) const {
#pragma unroll
        for (int i = 0; i < kLoads; ++i) {
            staged.codes[i] = codes_.load_16(offset_, step * kStepBytes + i * (kRowsTogether * kRowBytes));
        }
    }
    KILN_DEVICE void load_scales(Scales& scales, u32 step, u32 first_tile) const {
#pragma unroll
        for (int word = 0; word < kTokenTiles / kScaleTiles; ++word) {
            const u32 row = first_tile * kFragmentRows + word * scale_tile_rows(kBlockM);
            const u32 offset = step * Layout::kTileBytes + row * kGroups;
            scales.of[word] = kScaleTiles == 2 ? scales_.load_4(scale_offset_, offset)
                                               : scales_.load_2(scale_offset_, offset);
        }
    }
    KILN_DEVICE u32 scale(const Scales& scales, const Tile&, u32, int tile, u32) const {
        return scales.of[tile / kScaleTiles];
    }

  private:
    static constexpr u32 kRowBytes = kIntermediate / 2;
    static constexpr u32 kGroups = kIntermediate / kGroup;

    Buffer codes_;
    Buffer scales_;
    u32 offset_;
    u32 scale_offset_;
};

}  // namespace kiln::mxmoe
