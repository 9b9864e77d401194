// fused_moe/mxmoe_quantise for gfx950: the tokens as fp4 with a scale for each 32 elements.
//
// A work-group takes 2048 elements at once, eight a lane; four lanes have a group.

#include "constants.h"
#include "device/gfx950/mx_quantise.h"
#include "device/gfx950/vectors.h"
#include "device/types.h"
#include "fused_moe/mxmoe_arguments.h"
#include "fused_moe/mxmoe_workspace.h"

namespace kiln {
namespace {

using namespace kiln::mxmoe;
using namespace kiln::constants;

static_assert(kHidden % kStep == 0, "whole steps");
static_assert(kPieceElements == kThreads * kMxLaneElements);

}  // namespace
}  // namespace kiln

extern "C" __global__ __launch_bounds__(kiln::mxmoe::kThreads) void KILN_KERNEL_NAME(KILN_MXMOE_PARAMETERS) {
    using namespace kiln;
    const Arguments arguments = KILN_MXMOE_ARGUMENTS;
    constexpr u32 kRowLanes = kHidden / kMxLaneElements;
    const u32 lanes = arguments.m * kRowLanes;
    for (u32 i = blockIdx.x * kThreads + threadIdx.x; i < lanes; i += kMostPieceGroups * kThreads) {
        const u32 token = i / kRowLanes;
        const u32 column = i % kRowLanes * kMxLaneElements;
        const u32x4 elements =
            *reinterpret_cast<const u32x4*>(arguments.x + static_cast<u64>(token) * arguments.ldx + column);
        const u32 scale = mx_scale_e2m1(mx_amax(elements));
        reinterpret_cast<u32*>(arguments.x_q)[i] = mx_pack_e2m1(elements, scale);
        if (i % (kMxGroup / kMxLaneElements) == 0) {
            arguments.x_scale[TokenScales::offset(token, column / kGroup, kHidden / kGroup)] =
                static_cast<u8>(scale);
        }
    }
}
