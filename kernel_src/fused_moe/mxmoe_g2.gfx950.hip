// fused_moe/mxmoe_g2 for gfx950: the sorted rows of h times w2, fp4 times fp4, and the sum over a token's
// slots: added to out by atomic operations, stored a row for each pair for mxmoe_combine, or stored and
// combined by the last work-group of each 256 columns.
//
// A work-group computes 256 columns of H for a block of rows, which belong to one expert; its waves have 64
// columns each, of up to 64 rows.

#include "constants.h"
#include "device/gfx950/cross_lane.h"
#include "device/gfx950/election.h"
#include "device/gfx950/vectors.h"
#include "device/types.h"
#include "fused_moe/mxmoe_arguments.h"
#include "fused_moe/mxmoe_combine.h"
#include "fused_moe/mxmoe_multiply.h"
#include "fused_moe/mxmoe_output.h"
#include "fused_moe/mxmoe_rows.h"
#include "fused_moe/mxmoe_workspace.h"

namespace kiln {
namespace {

using namespace kiln::mxmoe;

static_assert(kHidden % kTileColumns == 0 && kIntermediate % kStep == 0, "whole tiles and steps");

constexpr u32 kColumnTiles = kHidden / kTileColumns;

}  // namespace
}  // namespace kiln

extern "C" __global__ __launch_bounds__(kiln::mxmoe::kTileThreads) __attribute__((amdgpu_waves_per_eu(
    kiln::mxmoe::kWavesOfSimd, kiln::mxmoe::kWavesOfSimd))) void KILN_KERNEL_NAME(KILN_MXMOE_PARAMETERS) {
    using namespace kiln;
    const Arguments arguments = KILN_MXMOE_ARGUMENTS;
    const u32 lane = threadIdx.x % kWaveLanes;
    const u32 wave = uniform(threadIdx.x / kWaveLanes);
    const WavePart part(wave);
    union Shared {
        IntermediateRows::Tile tiles[2];
        OutputTile output;
    };
    __shared__ Shared shared;
    __shared__ bool is_last;

    const u32 blocks = static_cast<u32>(arguments.num_valid[0]) / kBlockM;
    if constexpr (kCombines) {
        // Without any row nobody would be the last.
        if (blocks == 0 && blockIdx.x < kColumnTiles) {
            combine_columns<kTileWaves>(arguments, blockIdx.x * kTileColumns, wave, lane);
        }
    }
    for (u32 unit = blockIdx.x; unit < blocks * kColumnTiles; unit += kMostGroups) {
        const u32 block = unit / kColumnTiles;
        const u32 column_tile = unit % kColumnTiles;
        const u32 first_row = block * kBlockM;
        const u32 first_column = column_tile * kTileColumns;
        const u32 expert = static_cast<u32>(arguments.sorted_expert_ids[block]);
        const u32 wave_column = first_column + part.column_wave * kWaveRows;
        const WaveWeights<kIntermediate> weights(arguments.w2, arguments.w2_scale, expert, kHidden,
                                                 wave_column, wave_column + kWaveRows / 2, lane);
        Sums sums;
        multiply(weights, IntermediateRows(arguments, first_row, lane), shared.tiles, part.first_tile, lane,
                 sums);

        const Arguments late = arguments_again();
        const u32 late_lane = recomputed(lane);
        u32 entries[2];
#pragma unroll
        for (u32 i = 0; i < 2; ++i) {
            const u32 row = i * kWaveLanes + late_lane;
            entries[i] = static_cast<u32>(late.sorted_ids[first_row + (row < kBlockM ? row : 0)]);
        }
        const auto weight_of_row = [&](int tile) {
            return kAddsUp ? late.sorted_weights[first_row + (part.first_tile + tile) * kFragmentRows +
                                                 late_lane % kFragmentRows]
                           : 1.0F;
        };
        __syncthreads();
        put_columns(shared.output, sums, weight_of_row, part, late_lane);
        __syncthreads();
        write_rows(late, shared.output, entries, first_column, wave, late_lane);
        if constexpr (kCombines) {
            release_to_device();
            __syncthreads();
            if (threadIdx.x == 0) {
                is_last = SmallElection(late.counters + column_tile * kCounterStride).arrive(blocks);
            }
            __syncthreads();
            if (is_last) {
                acquire_from_device();
                combine_columns<kTileWaves>(late, first_column, wave, late_lane);
            }
        }
        if (unit + kMostGroups < blocks * kColumnTiles) {
            __syncthreads();
        }
    }
}
