// Weights times tokens along k, in the registers of a wave: what both kernels spend their time on.
#pragma once

#include "constants.h"
#include "device/gfx950/memory.h"
#include "device/gfx950/mfma.h"
#include "device/gfx950/vectors.h"
#include "device/macros.h"
#include "device/types.h"
#include "fused_moe/problem.h"

namespace kiln::fused_moe {

using namespace kiln::device;
using namespace kiln::constants;

// Nothing is scheduled across this point.
KILN_DEVICE void keep_order() {
    __builtin_amdgcn_sched_barrier(0);
}

// 128 k of kFragments tiles of weights and kTiles of tokens, as they wait in registers.
template <int kFragments, int kTiles>
struct OperandBlock {
    u32x4 w[kFragments][Weights::kLoads];
    u32 scale[kFragments];  // mxfp4: the lane's e8m0 byte
    // fp8: the block's, of the rows that the lanes of the lower half of the wave have sums of, and the upper.
    f32 lower_scale[kFragments], upper_scale[kFragments];
    u32x4 tokens[kTiles][Weights::kSteps];

    // The scales of fp8 are the same in all lanes, so scalar.
    static constexpr int kRegisters =
        4 * (kFragments * Weights::kLoads + kTiles * Weights::kSteps) + (kFp8 ? 0 : kFragments);
};

// Sums over kBlocks blocks of k: that of fragment f and tile t is sums[t * kFragments + f]. load(block, n)
// asks for the n-th. kWaves, of the work-group, decide how many registers a wave has, and so how many blocks
// are asked for ahead. kScalesDiffer: the two halves of the wave have scales of their own.
template <int kWaves, int kBlocks, int kFragments, int kTiles, bool kScalesDiffer, class Load>
KILN_DEVICE void multiply(const Load& load, u32 lane, f32x4 (&sums)[kTiles * kFragments]) {
    using Block = OperandBlock<kFragments, kTiles>;
    constexpr int kAhead = [] {
        constexpr int kRegisters = kWaves > 8 ? 64 : 128;  // of 128 and 256
        int blocks = kBlocks;
        while (blocks > 1 && blocks * Block::kRegisters > kRegisters) {
            --blocks;
        }
        return blocks;
    }();
    Block blocks[kAhead];
#pragma unroll
    for (int n = 0; n < kAhead; ++n) {
        load(blocks[n], n);
    }
    keep_order();
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
        Block& block = blocks[n % kAhead];
        f32x4 products[kTiles * kFragments];  // fp8: of this block
#pragma unroll
        for (int step = 0; step < Weights::kSteps; ++step) {
#pragma unroll
            for (int f = 0; f < kFragments; ++f) {
                const u32x4 a = Weights::operand(block.w[f], step, block.scale[f] << 23);
#pragma unroll
                for (int tile = 0; tile < kTiles; ++tile) {
                    const int i = tile * kFragments + f;
                    const bool first = step == 0 && (kFp8 || n == 0);
                    f32x4& sum = kFp8 ? products[i] : sums[i];
                    sum = mfma_16x16x32_bf16(a, block.tokens[tile][step], first ? f32x4{} : sum);
                }
            }
        }
        if constexpr (kFp8) {
#pragma unroll
            for (int i = 0; i < kTiles * kFragments; ++i) {
                const f32 lower = block.lower_scale[i % kFragments];
                const f32 upper = block.upper_scale[i % kFragments];
                const f32 scale = !kScalesDiffer || lane < kWaveLanes / 2 ? lower : upper;
                sums[i] = n == 0 ? products[i] * scale : products[i] * scale + sums[i];
                // Now, not at the end, which would keep the products of all blocks in registers.
                asm volatile("" : "+v"(sums[i]));
            }
        }
        if (n + kAhead < kBlocks) {
            load(block, n + kAhead);
        }
    }
}

// A constant offset in the part that an instruction holds and the rest.
struct SplitOffset {
    u32 in_instruction;
    u32 rest;
    explicit constexpr SplitOffset(u32 offset)
        : in_instruction(offset % Buffer::kInstructionReach), rest(offset - in_instruction) {}
};

}  // namespace kiln::fused_moe
