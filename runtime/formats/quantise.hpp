// The quantisers of activations, bit for bit as the kernels compute them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/formats/bf16.hpp"

namespace kiln::formats {

inline constexpr std::size_t kFp8Group = 128;  // consecutive k that share a scale

// One group of 128 to fp8: amax = max(|x|, 1e-10), scale = amax * float(1/448), q = e4m3fn(x * (1.0f /
// scale)). float32 throughout, a true division. At amax the product lies in 447.99994 .. 448, so nothing
// overflows.
//
// An amax whose scale is not finite, or a NaN among x, has no meaningful bytes; they are what the formulas
// above give. Returns the scale. Requires x.size() == q.size() == 128.
float quantise_group_fp8(std::span<const Bf16Bits> x, std::span<std::uint8_t> q);

// A row of K (a multiple of 128): q [K], scales [K / 128].
void quantise_1x128(std::span<const Bf16Bits> x, std::span<std::uint8_t> q, std::span<float> scales);

}  // namespace kiln::formats
