// The 1x128 quantiser for the tokens of a matrix product: a warp takes a k block of eight tokens at a time.
#pragma once

#include "device/macros.h"
#include "device/quantise.h"
#include "device/sm_90a/convert.h"
#include "device/sm_90a/fragment.h"
#include "device/sm_90a/matrix.h"
#include "device/sm_90a/memory.h"
#include "device/types.h"

namespace kiln::device {

// A k block of eight quantised tokens in shared memory, as load_matrices() takes them: pieces of 16 k, in a
// piece the tokens' 16 bytes. In every other piece the halves of the tokens trade places, so that lanes that
// write two pieces of four tokens meet no bank twice.
struct QuantisedTokens {
    static constexpr u32 kPieces = kQuantiserGroup / MmaFragment::kDepth;
    static constexpr u32 kPieceBytes = MmaFragment::kColumns * MmaFragment::kDepth;
    static constexpr u32 kBytes = kPieces * kPieceBytes;

    KILN_DEVICE static constexpr u32 offset(u32 piece, u32 token) {
        return piece * kPieceBytes + (token ^ (piece % 2 * 4)) * MmaFragment::kDepth;
    }
};

#if defined(__CUDACC__)
// Lane (g, t) holds k 32i + 8t .. 32i + 8t + 7 of token g, for i = 0 to 3, as packed bf16.
struct TokenRegisters {
    static constexpr u32 kLoads = 4;
    static constexpr u32 kLoadDepth = 8;  // k in 16 bytes
    Words4 load[kLoads];
};

// Tokens of a thread block's part of K, eight by a k block at a time.
class TokenLoader {
  public:
    KILN_DEVICE TokenLoader(const bf16_bits* x, u32 m, u32 ldx, u32 first_block, u32 lane)
        : first_(x + static_cast<u64>(lane / 4) * ldx + first_block * kQuantiserGroup +
                 lane % 4 * TokenRegisters::kLoadDepth),
          group_stride_(static_cast<u64>(MmaFragment::kColumns) * ldx),
          token_(lane / 4),
          m_(m) {}

    // Zeros for tokens past m, without a look at memory.
    [[nodiscard]] KILN_DEVICE TokenRegisters load(u32 group, u32 block) const {
        TokenRegisters tokens = {};
        if (group * MmaFragment::kColumns + token_ < m_) {
            const bf16_bits* const source = first_ + group * group_stride_ + block * kQuantiserGroup;
#pragma unroll
            for (u32 i = 0; i < TokenRegisters::kLoads; ++i) {
                tokens.load[i] = load_constant_16(source + i * (4 * TokenRegisters::kLoadDepth));
            }
        }
        return tokens;
    }

  private:
    const bf16_bits* first_;
    u64 group_stride_;
    u32 token_;
    u32 m_;
};

// The second operand of mma_16x8x16_f16 for each piece.
KILN_DEVICE void load_tokens(u32 shared_address, u32 lane, F16Quad (&operands)[QuantisedTokens::kPieces]) {
#pragma unroll
    for (u32 piece = 0; piece < QuantisedTokens::kPieces; piece += 4) {
        const MatrixRows rows =
            load_matrices(shared_address + QuantisedTokens::offset(piece + lane / 8, lane % 8));
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            operands[piece + i] = unpack_e4m3(rows.word[i]);
        }
    }
}

// Writes them, and returns the scale of the lane's token.
KILN_DEVICE f32 quantise(const TokenRegisters& tokens, u32 shared_address, u32 lane) {
    constexpr u32 kAllLanes = ~0U;
    u32 largest = 0;
#pragma unroll
    for (const Words4& words : tokens.load) {
#pragma unroll
        for (const u32 word : words.word) {
            largest = max_magnitudes(largest, word);
        }
    }
    largest = max_magnitudes(largest, __shfl_xor_sync(kAllLanes, largest, 1));
    largest = max_magnitudes(largest, __shfl_xor_sync(kAllLanes, largest, 2));
    const f32 amax = fmaxf(fmaxf(fabsf(low_bf16(largest)), fabsf(high_bf16(largest))), kAmaxFloor);
    const f32 scale = quantiser_scale(amax);
    const f32 inverse = refined_reciprocal(scale, estimated_reciprocal(scale));

    const auto four = [&](u32 first, u32 second) {
        return pack_e4m3(low_bf16(first) * inverse, high_bf16(first) * inverse, low_bf16(second) * inverse,
                         high_bf16(second) * inverse);
    };
    const u32 t = lane % 4;
#pragma unroll
    for (u32 i = 0; i < TokenRegisters::kLoads; ++i) {
        const Words4& words = tokens.load[i];
        store_shared_8(shared_address + QuantisedTokens::offset(2 * i + t / 2, lane / 4) + t % 2 * 8,
                       four(words.word[0], words.word[1]), four(words.word[2], words.word[3]));
    }
    return scale;
}
#endif

}  // namespace kiln::device
