#include "device/quantise.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

using namespace kiln::device;

TEST_CASE(
    "quantiser: one step of Newton's makes a true division, for every scale and every estimate within 1 "
    "ulp") {
    const auto check = [](float amax) {
        const float s = quantiser_scale(amax);
        REQUIRE(std::isnormal(s));
        const float exact = 1.0F / s;
        REQUIRE(std::isnormal(exact));
        const double inverse = 1.0 / static_cast<double>(s);
        float estimate = exact;
        for (int i = 0; i < 3; ++i) {
            estimate = std::nextafterf(estimate, 0.0F);
        }
        int tried = 0;
        for (int i = 0; i < 7;
             ++i, estimate = std::nextafterf(estimate, std::numeric_limits<float>::infinity())) {
            const double ulp =
                static_cast<double>(std::nextafterf(exact, std::numeric_limits<float>::infinity())) -
                static_cast<double>(exact);
            if (std::fabs(static_cast<double>(estimate) - inverse) <= ulp) {
                ++tried;
                REQUIRE(refined_reciprocal(s, estimate) == exact);
            }
        }
        REQUIRE(tried >= 2);
    };
    check(kAmaxFloor);
    for (std::uint32_t code = 0; code < 0x7f80; ++code) {
        const float amax = std::bit_cast<float>(code << 16);
        if (amax > kAmaxFloor) {
            check(amax);
        }
    }
}

TEST_CASE("quantiser: the factor is float(1/448)") {
    CHECK(std::bit_cast<std::uint32_t>(kInverseE4m3Max) == 0x3B124925u);
    CHECK(std::bit_cast<std::uint32_t>(kAmaxFloor) == std::bit_cast<std::uint32_t>(1e-10f));
}
