// bf16 on the host: the upper half of a float32.
#pragma once

#include <bit>
#include <cstdint>

namespace kiln::formats {

using Bf16Bits = std::uint16_t;

[[nodiscard]] constexpr float bf16_to_float(Bf16Bits bits) {
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

// To nearest even; overflow becomes infinity, NaN stays NaN (quiet, its sign kept).
[[nodiscard]] constexpr Bf16Bits float_to_bf16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return static_cast<Bf16Bits>((bits >> 16) | 0x40u);
    }
    return static_cast<Bf16Bits>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// To nearest even in one step: going through float32 could round twice.
[[nodiscard]] Bf16Bits double_to_bf16(double value);

// The distance between this value and the next larger magnitude: one unit in the last place. 2^-133 around
// zero.
[[nodiscard]] double bf16_unit(double value);

}  // namespace kiln::formats
