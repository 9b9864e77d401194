// fp4 e2m1 (OCP) on the host: sign, 2 exponent bits (bias 1), 1 mantissa bit; no infinity, no NaN, the
// largest value is 6. Codes 0 .. 7 are 0, 0.5, 1, 1.5, 2, 3, 4, 6; bit 3 is the sign.
//
// Two codes share a byte, the even k in the low nibble.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kiln::formats {

inline constexpr float kE2m1Max = 6.0f;

// Bits above the code's four are ignored.
[[nodiscard]] float e2m1_to_float(std::uint8_t code);

// To nearest, ties to the even code; what lies beyond 6 becomes 6, the sign kept. NaN becomes 6 too, since
// there is nothing for it to become.
[[nodiscard]] std::uint8_t float_to_e2m1(float value);

// The code of element k.
[[nodiscard]] constexpr std::uint8_t e2m1_at(std::span<const std::uint8_t> packed, std::size_t k) {
    return static_cast<std::uint8_t>(k % 2 == 0 ? packed[k / 2] & 0xf : packed[k / 2] >> 4);
}

// Two neighbouring elements in a byte.
[[nodiscard]] constexpr std::uint8_t pack_e2m1(std::uint8_t even, std::uint8_t odd) {
    return static_cast<std::uint8_t>((even & 0xf) | (odd << 4));
}

}  // namespace kiln::formats
