// linear/small_m for gfx950: out = bf16(quantise_1x128(x) * w^T with 128x128 block scales), few tokens, one
// launch.
//
// A work-group computes all tokens by 16 * kTilesN columns; its waves split K and add their sums up through
// LDS. The matrix instruction takes weights as A and activations as B, so a lane holds one token r = lane %
// 16: its scale, its column of the product, and four consecutive outputs. Activations are quantised in
// registers, straight into the B layout.
//
// A wave asks for the activations of its first kBlocksAhead k blocks, then for their weights, then works:
// loads return in order, so the quantiser runs while the weights are on their way. From then on every block
// worked off is replaced by a load of a later one.

#include "constants.h"
#include "device/gfx950/convert.h"
#include "device/gfx950/cross_lane.h"
#include "device/gfx950/fragment.h"
#include "device/gfx950/memory.h"
#include "device/gfx950/mfma.h"
#include "device/gfx950/quantise.h"
#include "device/gfx950/reduce.h"
#include "device/gfx950/unpack.h"
#include "device/gfx950/vectors.h"
#include "device/gfx950/weights.h"
#include "device/layout.h"
#include "device/quantise.h"
#include "device/types.h"

namespace kiln {
namespace {

using namespace kiln::device;
using namespace kiln::constants;

constexpr int kTileColumns = PreshuffledWeights::kTileRows;
constexpr int kBlocks = kK / kQuantiserGroup;
constexpr int kTilesM = (kMaxM + kFragmentRows - 1) / kFragmentRows;
constexpr int kWaveBlocks = kBlocks / kWaves;
constexpr int kScaleColumns = 128;  // columns of N that share a weight scale
constexpr int kGroupColumns = kTilesN * kTileColumns;
constexpr int kFragments = kTilesM * kTilesN;

static_assert(kN % kTileColumns == 0 && kK % kQuantiserGroup == 0, "the problem consists of 16 x 128 tiles");
static_assert(static_cast<u64>(kN) * kK < (1ULL << 32), "32-bit offsets reach all weights");
static_assert(kMaxM >= 1 && kMaxM <= 64, "small M");
static_assert(kTilesN >= 1 && kTilesN <= 8 && kN / kTileColumns % kTilesN == 0,
              "tiles_n divides the columns");
static_assert(kWaves >= 1 && kWaves <= 16 && kBlocks % kWaves == 0, "waves divide the k blocks");
static_assert(kLaneRows == kFragmentRows || kMaxM <= kLaneRows, "lane_rows holds every token");
static_assert(kBlocksAhead * (8 * kTilesN + kTilesM * kLaneRows) + 4 * kFragments <= 112,
              "loads in flight and sums leave registers for four waves a SIMD");
static_assert(kBlocksAhead >= 1 && kWaveBlocks % kBlocksAhead == 0, "blocks_ahead divides a wave's blocks");

// A unit is one k block of 16 tokens. Units whose scales are worked out together: more save exchanges between
// lanes, and keep more unpacked activations in registers.
constexpr int kUnits = kWaveBlocks * kTilesM;
constexpr int step_units() {
    int units = kFragmentRows / kLaneRows;
    while (kBlocksAhead * kTilesM % units != 0) {
        units /= 2;
    }
    return units;
}
constexpr int kStepUnits = step_units();

using Slice = TokenSlice<kLaneRows>;
using Activations = SliceRegisters<kLaneRows>;

// One k block as it waits in registers.
struct Block {
    Activations x[kTilesM];
    i32x8 w[kTilesN];
};

struct ActivationLoader {
    Buffer buffer;
    u32 lane_offset[kTilesM];
    u32 wave_offset;

    __device__ __forceinline__ ActivationLoader(const bf16_bits* x, i32 m, i32 ldx, u32 lane, u32 wave)
        : buffer(x, static_cast<u32>(m) * static_cast<u32>(ldx) * sizeof(bf16_bits)),
          wave_offset(wave * (kWaveBlocks * kQuantiserGroup * sizeof(bf16_bits))) {
        const u32 row_bytes = static_cast<u32>(ldx) * sizeof(bf16_bits);
#pragma unroll
        for (int tile = 0; tile < kTilesM; ++tile) {
            lane_offset[tile] = (tile * kFragmentRows + Slice::token(lane)) * row_bytes  // row
                                + Slice::k(lane, 0) * sizeof(bf16_bits);  // first element in a k block
        }
    }

    __device__ __forceinline__ void load(Block& block, int k_block) const {
#pragma unroll
        for (int tile = 0; tile < kTilesM; ++tile) {
#pragma unroll
            for (int i = 0; i < Slice::kLoads; ++i) {
                const u32 k = k_block * kQuantiserGroup  // k block of the wave
                              + Slice::load_k(i);        // load in the k block
                const u32x4 piece = buffer.load_16(lane_offset[tile] + k * sizeof(bf16_bits), wave_offset);
                block.x[tile].packed[4 * i + 0] = piece.x;
                block.x[tile].packed[4 * i + 1] = piece.y;
                block.x[tile].packed[4 * i + 2] = piece.z;
                block.x[tile].packed[4 * i + 3] = piece.w;
            }
        }
    }
};

struct WeightLoader {
    Buffer buffer;
    u32 lane_offset;
    u32 wave_offset;  // the work-group's first tile, at the wave's first k block

    __device__ __forceinline__ WeightLoader(const u8* w, u32 first_tile, u32 lane, u32 wave)
        : buffer(w, static_cast<u32>(kN) * kK),
          lane_offset(WeightChunks::lane_offset(lane)),
          wave_offset(static_cast<u32>(PreshuffledWeights::tile_offset(first_tile, kK)) +
                      WeightChunks::chunk_offset(wave * kWaveBlocks, 0)) {}

    __device__ __forceinline__ void load(Block& block, int k_block) const {
#pragma unroll
        for (int tile = 0; tile < kTilesN; ++tile) {
            const u32 offset = static_cast<u32>(PreshuffledWeights::tile_offset(tile, kK)) +
                               WeightChunks::chunk_offset(k_block, 0);
            const u32 in_instruction = offset % Buffer::kInstructionReach;
            const u32 in_wave = wave_offset + (offset - in_instruction);
            const u32x4 low = buffer.load_streaming_16(lane_offset + in_instruction, in_wave);
            const u32x4 high =
                buffer.load_streaming_16(lane_offset + in_instruction + WeightChunks::kChunkBytes, in_wave);
            block.w[tile] =
                __builtin_bit_cast(i32x8, __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7));
        }
    }
};

// The scales of the weights that a wave meets: uniform, so they come by scalar loads.
struct WeightScales {
    f32 value[kWaveBlocks][kTilesN];

    __device__ __forceinline__ WeightScales(const f32* w_scale, u32 first_column, u32 wave) {
#pragma unroll
        for (int tile = 0; tile < kTilesN; ++tile) {
            const f32* row =
                w_scale + (first_column + tile * kTileColumns) / kScaleColumns * kBlocks + wave * kWaveBlocks;
#pragma unroll
            for (int k_block = 0; k_block < kWaveBlocks; ++k_block) {
                value[k_block][tile] = row[k_block];
            }
        }
    }
};

// Nothing is scheduled across this point.
__device__ __forceinline__ void keep_order() {
    __builtin_amdgcn_sched_barrier(0);
}

}  // namespace
}  // namespace kiln

extern "C" __global__ __launch_bounds__(64 * kiln::constants::kWaves)
    __attribute__((amdgpu_waves_per_eu(4))) void KILN_KERNEL_NAME(
        const kiln::device::bf16_bits* __restrict__ x, const kiln::device::u8* __restrict__ w,
        const float* __restrict__ w_scale, kiln::device::bf16_bits* __restrict__ out, int m, int ldx) {
    using namespace kiln;
    const u32 lane = threadIdx.x % kWaveLanes;
    const u32 wave = kWaves == 1 ? 0 : uniform(threadIdx.x / kWaveLanes);
    const u32 first_column = blockIdx.x * kGroupColumns;

    // All arguments in one scalar load, not the last pointer in one of its own when it is needed.
    asm volatile("" ::"s"(out));

    const ActivationLoader activations(x, m, ldx, lane, wave);
    const WeightLoader weights(w, blockIdx.x * kTilesN, lane, wave);
    const WeightScales weight_scales(w_scale, first_column, wave);

    Block blocks[kBlocksAhead];
#pragma unroll
    for (int i = 0; i < kBlocksAhead; ++i) {
        activations.load(blocks[i], i);
    }
    keep_order();
#pragma unroll
    for (int i = 0; i < kBlocksAhead; ++i) {
        weights.load(blocks[i], i);
    }
    keep_order();

    const Bf16Unpacker unpack(lane);
    f32x4 sums[kFragments];
#pragma unroll
    for (int first = 0; first < kUnits; first += kStepUnits) {
        f32 amaxes[kStepUnits];
        Scales scales[kStepUnits];
#pragma unroll
        for (int i = 0; i < kStepUnits; ++i) {
            const int unit = first + i;
            amaxes[i] = lane_amax(blocks[unit / kTilesM % kBlocksAhead].x[unit % kTilesM], unpack);
        }
        quantiser_scales<kLaneRows, kStepUnits>(amaxes, scales);
#pragma unroll
        for (int i = 0; i < kStepUnits; ++i) {
            const int k_block = (first + i) / kTilesM;
            const int tile_m = (first + i) % kTilesM;
            Block& block = blocks[k_block % kBlocksAhead];
            const i32x8 tokens = quantised_fragment(block.x[tile_m], unpack, scales[i].inverse);
#pragma unroll
            for (int tile_n = 0; tile_n < kTilesN; ++tile_n) {
                const f32x4 product = mfma_16x16x128_e4m3(block.w[tile_n], tokens, f32x4{});
                const f32 scale = scales[i].scale * weight_scales.value[k_block][tile_n];
                f32x4& sum = sums[tile_m * kTilesN + tile_n];
                sum = k_block == 0 ? product * scale : product * scale + sum;
            }
            const int next = k_block + kBlocksAhead;
            if (tile_m == kTilesM - 1 && next < kWaveBlocks) {
                activations.load(block, next);
                weights.load(block, next);
            }
        }
    }

    const Buffer output(out, static_cast<u32>(m) * (kN * sizeof(bf16_bits)));
    const auto store = [&](f32x4 sum, u32 fragment) {
        const u32 tile_m = fragment / kTilesN;
        const u32 tile_n = fragment % kTilesN;
        const u32 token = tile_m * kFragmentRows + AccumulatorFragment::column(lane);
        const u32 column = tile_n * kTileColumns + AccumulatorFragment::row(lane, 0);
        output.store_8({pack_bf16(sum.x, sum.y), pack_bf16(sum.z, sum.w)},
                       (token * kN + column) * sizeof(bf16_bits), first_column * sizeof(bf16_bits));
    };
    if constexpr (kWaves == 1) {
#pragma unroll
        for (int fragment = 0; fragment < kFragments; ++fragment) {
            store(sums[fragment], fragment);
        }
    } else {
        __shared__ WavePartials<kWaves, kFragments> partials;
        partials.put(wave, sums, lane);
        __syncthreads();
        for (u32 fragment = wave; fragment < kFragments; fragment += kWaves) {
            store(partials.sum(fragment, lane), fragment);
        }
    }
}
