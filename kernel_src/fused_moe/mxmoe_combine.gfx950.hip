// fused_moe/mxmoe_combine for gfx950: out from the rows that g2 left for each pair of a token and a slot.
//
// A wave takes 256 columns of a token, four a lane, and a work-group eight times that.

#include "constants.h"
#include "device/gfx950/cross_lane.h"
#include "device/gfx950/vectors.h"
#include "device/types.h"
#include "fused_moe/mxmoe_arguments.h"
#include "fused_moe/mxmoe_combine.h"
#include "fused_moe/mxmoe_workspace.h"

extern "C" __global__ __launch_bounds__(kiln::mxmoe::kThreads) void KILN_KERNEL_NAME(KILN_MXMOE_PARAMETERS) {
    using namespace kiln::mxmoe;
    static_assert(kHidden % kTileColumns == 0, "a wave's columns are one token's");
    const Arguments arguments = KILN_MXMOE_ARGUMENTS;
    constexpr u32 kColumnTiles = kHidden / kTileColumns;
    constexpr u32 kTogether = kPieceElements / kTileColumns;
    const u32 lane = threadIdx.x % kWaveLanes;
    const u32 wave = uniform(threadIdx.x / kWaveLanes);
    const u32 units = arguments.m * kColumnTiles;
    for (u32 first = blockIdx.x * kTogether; first < units; first += kMostPieceGroups * kTogether) {
#pragma unroll
        for (u32 i = 0; i < kTogether; i += kThreads / kWaveLanes) {
            if (const u32 unit = first + i + wave; unit < units) {
                combine(arguments, unit / kColumnTiles, unit % kColumnTiles * kTileColumns + lane * 4, lane);
            }
        }
    }
}
