#include "runtime/formats/e4m3.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kiln::formats {

namespace {
constexpr int kBias = 7;
constexpr int kMinExponent = 1 - kBias;  // of a normal number; subnormals have its unit
constexpr std::uint8_t kNan = 0x7f;
}  // namespace

float e4m3_to_float(std::uint8_t code) {
    const int exponent = (code >> 3) & 0xf;
    const int mantissa = code & 0x7;
    float magnitude = 0;
    if ((code & 0x7f) == kNan) {
        magnitude = std::numeric_limits<float>::quiet_NaN();
    } else if (exponent == 0) {
        magnitude = std::ldexp(static_cast<float>(mantissa), kMinExponent - 3);
    } else {
        magnitude = std::ldexp(static_cast<float>(8 + mantissa), exponent - kBias - 3);
    }
    return (code & 0x80) != 0 ? -magnitude : magnitude;
}

std::uint8_t float_to_e4m3(float value) {
    const auto sign = static_cast<std::uint8_t>(std::signbit(value) ? 0x80 : 0);
    const float magnitude = std::fabs(value);
    // Half a unit above 448 lies 464, which ties to even: the code above 448's would be NaN's.
    if (std::isnan(value) || magnitude > 464.0f) {
        return sign | kNan;
    }
    int exponent = 0;
    std::frexp(magnitude, &exponent);  // 0 for zero, hence the next line's exception
    exponent = magnitude == 0 ? kMinExponent : std::max(exponent - 1, kMinExponent);
    // In units of the last place: 0 .. 16, where 16 carries into the next exponent.
    const auto units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 3 - exponent)));
    // For a normal number 8 units are the implied bit, so codes follow each other as the values do.
    const int code = ((exponent - kMinExponent) << 3) + units;
    return static_cast<std::uint8_t>(sign | code);
}

}  // namespace kiln::formats
