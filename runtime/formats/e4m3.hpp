// fp8 e4m3fn (OCP) on the host: sign, 4 exponent bits (bias 7), 3 mantissa bits; no infinity, 0x7f and 0xff
// are NaN, the largest value is 448.
//
// Written from the format's definition, apart from the simulator's own conversions: each checks the other.
#pragma once

#include <cstdint>

namespace kiln::formats {

inline constexpr float kE4m3Max = 448.0f;

[[nodiscard]] float e4m3_to_float(std::uint8_t code);

// To nearest, ties to the even code. Magnitudes that would round above 448 become NaN, as on gfx950; the
// quantiser never makes one.
[[nodiscard]] std::uint8_t float_to_e4m3(float value);

}  // namespace kiln::formats
