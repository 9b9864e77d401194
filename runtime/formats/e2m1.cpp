#include "runtime/formats/e2m1.hpp"

#include <algorithm>
#include <cmath>

namespace kiln::formats {

namespace {
constexpr float kValues[] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
constexpr std::uint8_t kSign = 0x8;
}  // namespace

float e2m1_to_float(std::uint8_t code) {
    const float magnitude = kValues[code & 0x7];
    return (code & kSign) != 0 ? -magnitude : magnitude;
}

std::uint8_t float_to_e2m1(float value) {
    const std::uint8_t sign = std::signbit(value) ? kSign : 0;
    const float magnitude = std::isnan(value) ? kE2m1Max : std::min(std::fabs(value), kE2m1Max);
    // From 2 on the last place is 2^exponent / 2; below that it is 0.5 throughout, subnormals included.
    const float unit = magnitude < 2.0f ? 0.5f : magnitude < 4.0f ? 1.0f : 2.0f;
    const float rounded = std::nearbyint(magnitude / unit) * unit;  // ties to even under the default mode
    const auto found = std::find(std::begin(kValues), std::end(kValues), rounded);
    return static_cast<std::uint8_t>(sign | (found - std::begin(kValues)));
}

}  // namespace kiln::formats
