#include "runtime/formats/bf16.hpp"

#include <algorithm>
#include <cmath>

namespace kiln::formats {

namespace {
constexpr int kMantissaBits = 7;
constexpr int kMinExponent = -126;
}  // namespace

double bf16_unit(double value) {
    int exponent = 0;
    std::frexp(value, &exponent);  // value = f * 2^exponent with f in [0.5, 1)
    return std::ldexp(1.0,
                      (value == 0 ? kMinExponent : std::max(exponent - 1, kMinExponent)) - kMantissaBits);
}

Bf16Bits double_to_bf16(double value) {
    if (!std::isfinite(value)) {
        return float_to_bf16(static_cast<float>(value));
    }
    // A multiple of the unit, ties to even (nearbyint under the default rounding mode); exact in float32,
    // except for overflow, which is infinity there too.
    const double unit = bf16_unit(value);
    return float_to_bf16(static_cast<float>(std::nearbyint(value / unit) * unit));
}

}  // namespace kiln::formats
