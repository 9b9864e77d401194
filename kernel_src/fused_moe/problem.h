// What both kernels of small_m make of the problem, and the rules that they share.
#pragma once

#include "constants.h"
#include "device/gfx950/convert.h"
#include "device/gfx950/expert_table.h"
#include "device/gfx950/fragment.h"
#include "device/gfx950/memory.h"
#include "device/gfx950/narrow_weights.h"
#include "device/gfx950/vectors.h"
#include "device/layout.h"
#include "device/macros.h"
#include "device/types.h"

namespace kiln::fused_moe {

using namespace kiln::device;
using namespace kiln::constants;

using Weights = NarrowWeights<kFp8 ? 8 : 4>;

inline constexpr u32 kGateUpRows = 2 * kIntermediate;
inline constexpr u32 kPairs = kMaxM * kSlots;
inline constexpr int kTokenTiles = (kMaxM + kFragmentRows - 1) / kFragmentRows;
inline constexpr int kScaleSide = 128;  // of a block of fp8 weights
inline constexpr int kMxGroup = 32;
constexpr u32 round_up(u32 value, u32 unit) {
    return (value + unit - 1) / unit * unit;
}

static_assert(kFp8 == 0 || kFp8 == 1);
static_assert(kInterleaved == 0 || (kInterleaved == 1 && !kFp8), "fp8 weights are not interleaved");
static_assert(kHidden % kWeightBlock == 0, "hidden consists of whole blocks");
static_assert(kIntermediate % (kFp8 ? 128 : 64) == 0,
              "intermediate consists of whole blocks, or halves in mxfp4");
static_assert(kExperts >= 1 && kExperts <= 1024 && kSlots >= 1 && kSlots <= 16);
static_assert(kMaxM >= 1 && kMaxM <= 64 && kPairs <= 704, "small M");
static_assert(static_cast<u64>(kPairs) * kIntermediate * sizeof(bf16_bits) < Buffer::kNowhere,
              "32-bit offsets reach all of h, and Buffer::kNowhere lies outside");
static_assert(static_cast<u64>(kGateUpRows) * Weights::row_bytes(kHidden) < (1ULL << 32) - (1U << 16),
              "32-bit offsets reach the weights of an expert");

// Four of a row, as they are stored.
KILN_DEVICE u32x2 packed(f32x4 values) {
    return {pack_bf16(values.x, values.y), pack_bf16(values.z, values.w)};
}

// -1 is padding. Any other id that is no expert's is left out as well, and reported.
KILN_DEVICE void flag_if_illegal(i32 id, u32* flag) {
    if (!is_expert<kExperts>(id) && id != -1) {
        __hip_atomic_fetch_or(flag, 1U, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    }
}

// Calls body(Tiles<n>) for the n tiles that hold `tokens`.
template <int kTiles>
struct Tiles {
    static constexpr int value = kTiles;
};
template <int kTiles = 1, class Body>
KILN_DEVICE void with_tiles(u32 tokens, const Body& body) {
    if constexpr (kTiles < kTokenTiles) {
        if (tokens > kTiles * kFragmentRows) {
            with_tiles<kTiles + 1>(tokens, body);
            return;
        }
    }
    body(Tiles<kTiles>{});
}

}  // namespace kiln::fused_moe
