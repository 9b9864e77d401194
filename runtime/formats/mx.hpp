// The quantisers to the OCP's MX formats: groups of 32 elements along k that share an e8m0 scale, which is
// rounded up so that nothing overflows.
//
//     amax  = max |x|, or max(|x|, 1e-10) with the floor
//     w     = amax * float(1/largest)                    largest = 6 (0x3E2AAAAB) or 448 (0x3B124925)
//     scale = exponent(w) + (mantissa(w) != 0 ? 1 : 0)   fields of the float32; denormals are kept
//     q     = nearest even of x / 2^(scale - 127)        one rounding
//
// For every finite bf16 amax the product has the same scale as a division would give. A zero group has scale
// 0 without the floor, with it 92 for fp4 and 85 for fp8. A group with an infinity or a NaN in it has scale
// 255 (NaN) with the floor, 254 without, and bytes that mean nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/formats/bf16.hpp"

namespace kiln::formats {

inline constexpr std::size_t kMxGroup = 32;

enum class MxType { e2m1, e4m3fn };
enum class AmaxFloor { none, at_1e_10 };

[[nodiscard]] constexpr std::size_t mx_bytes(MxType type, std::size_t elements) {
    return type == MxType::e2m1 ? elements / 2 : elements;
}

// The scale of a group whose largest magnitude is `amax`.
[[nodiscard]] std::uint8_t mx_scale(float amax, MxType type, AmaxFloor floor);

// One group; returns its scale. Requires 32 x, and q of mx_bytes(type, 32).
std::uint8_t quantise_group_mx(std::span<const Bf16Bits> x, MxType type, AmaxFloor floor,
                               std::span<std::uint8_t> q);

// A row of K (a multiple of 32): q of mx_bytes(type, K), scales [K / 32].
void quantise_1x32(std::span<const Bf16Bits> x, MxType type, AmaxFloor floor, std::span<std::uint8_t> q,
                   std::span<std::uint8_t> scales);

}  // namespace kiln::formats
