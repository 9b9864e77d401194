// fused_moe/mxmoe_g1 for gfx950: h = silu(gate(x)) * up(x) for the sorted rows, fp4 times fp4, and h
// quantised to fp4.
//
// A work-group computes 128 columns of I (256 of 2I) for a block of rows, which belong to one expert; its
// waves have 32 columns each, gate and up.

#include "constants.h"
#include "device/gfx950/cross_lane.h"
#include "device/gfx950/vectors.h"
#include "device/types.h"
#include "fused_moe/mxmoe_arguments.h"
#include "fused_moe/mxmoe_intermediate.h"
#include "fused_moe/mxmoe_multiply.h"
#include "fused_moe/mxmoe_rows.h"
#include "fused_moe/mxmoe_workspace.h"

namespace kiln {
namespace {

using namespace kiln::mxmoe;

static_assert(kHidden % kStep == 0 && kIntermediate % (kTileColumns / 2) == 0, "whole tiles");
static_assert(!kF16In || kBlockM == 16, "rows are quantised on the way in blocks of 16");

template <bool kQuantises>
struct RowsOf {
    using Type = TokenRows;
};
template <>
struct RowsOf<true> {
    using Type = QuantisingRows;
};
using Rows = RowsOf<kF16In != 0>::Type;

// -1 is padding. Any other id that is no expert's is reported; the sort left it out.
KILN_DEVICE void flag_illegal_ids(const Arguments& arguments) {
    const u32 pairs = arguments.m * kSlots;
    for (u32 first = blockIdx.x * kTileThreads; first < pairs; first += kMostGroups * kTileThreads) {
        const u32 pair = first + threadIdx.x;
        const i32 id = pair < pairs ? arguments.ids[pair] : -1;
        if (static_cast<u32>(id) >= kExperts && id != -1) {
            __hip_atomic_fetch_or(arguments.flag, 1U, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        }
    }
}

}  // namespace
}  // namespace kiln

extern "C" __global__ __launch_bounds__(kiln::mxmoe::kTileThreads) __attribute__((amdgpu_waves_per_eu(
    kiln::mxmoe::kWavesOfSimd, kiln::mxmoe::kWavesOfSimd))) void KILN_KERNEL_NAME(KILN_MXMOE_PARAMETERS) {
    using namespace kiln;
    const Arguments arguments = KILN_MXMOE_ARGUMENTS;
    constexpr u32 kColumns = kTileColumns / 2;
    constexpr u32 kColumnTiles = kIntermediate / kColumns;
    const u32 lane = threadIdx.x % kWaveLanes;
    const WavePart part(uniform(threadIdx.x / kWaveLanes));
    __shared__ Rows::Tile tiles[2];

    flag_illegal_ids(arguments);
    const u32 units = static_cast<u32>(arguments.num_valid[0]) / kBlockM * kColumnTiles;
    for (u32 unit = blockIdx.x; unit < units; unit += kMostGroups) {
        const u32 block = unit / kColumnTiles;
        const u32 column = unit % kColumnTiles * kColumns + part.column_wave * kWaveColumns;
        const u32 expert = static_cast<u32>(arguments.sorted_expert_ids[block]);
        // Interleaved, tiles of gate rows and up rows take turns.
        const u32 first = kInterleaved ? 2 * column : column;
        const u32 second = kInterleaved ? first + kWaveColumns : kIntermediate + column;
        const WaveWeights<kHidden> weights(arguments.w13, arguments.w13_scale, expert, 2 * kIntermediate,
                                           first, second, lane);
        Sums sums;
        multiply(weights, Rows(arguments, block * kBlockM, lane), tiles, part.first_tile, lane, sums);
        store_intermediate(arguments, sums, block * kBlockM + part.first_tile * kFragmentRows, column,
                           recomputed(lane));
        if (unit + kMostGroups < units) {
            __syncthreads();
        }
    }
}
