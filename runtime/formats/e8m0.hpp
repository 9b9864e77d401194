// e8m0 (OCP), the scale of a group of 32 on the host: 2^(code - 127), and 255 is NaN.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace kiln::formats {

inline constexpr int kE8m0Bias = 127;
inline constexpr std::uint8_t kE8m0Nan = 0xff;

// Code 0 is 2^-127, as the matrix unit and the scaled conversions read it. A program that forms float32 bits
// as code << 23 and multiplies by them gets zero for it instead.
[[nodiscard]] inline float e8m0_to_float(std::uint8_t code) {
    return code == kE8m0Nan ? std::numeric_limits<float>::quiet_NaN()
                            : std::ldexp(1.0f, int{code} - kE8m0Bias);
}

}  // namespace kiln::formats
