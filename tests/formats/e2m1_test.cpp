#include "runtime/formats/e2m1.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>

using namespace kiln::formats;

TEST_CASE("e2m1: the sixteen values, and each code comes back") {
    constexpr float kValues[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
    for (int code = 0; code < 8; ++code) {
        const auto positive = static_cast<std::uint8_t>(code);
        const auto negative = static_cast<std::uint8_t>(code | 8);
        CHECK(e2m1_to_float(positive) == kValues[code]);
        CHECK(e2m1_to_float(negative) == -kValues[code]);
        CHECK(std::signbit(e2m1_to_float(negative)));
        CHECK(float_to_e2m1(e2m1_to_float(positive)) == positive);
        CHECK(float_to_e2m1(e2m1_to_float(negative)) == negative);
    }
}

TEST_CASE("e2m1: to nearest, ties to the even code") {
    constexpr std::array<std::pair<float, int>, 7> kTies{
        {{0.25f, 0}, {0.75f, 2}, {1.25f, 2}, {1.75f, 4}, {2.5f, 4}, {3.5f, 6}, {5.0f, 6}}};
    for (std::size_t i = 0; i < kTies.size(); ++i) {
        const auto& [tie, code] = kTies[i];
        CAPTURE(tie);
        CHECK(float_to_e2m1(tie) == code);
        CHECK(float_to_e2m1(-tie) == (code | 8));
        CHECK(float_to_e2m1(std::nextafter(tie, 0.0f)) == static_cast<int>(i));
        CHECK(float_to_e2m1(std::nextafter(tie, 9.0f)) == static_cast<int>(i) + 1);
    }
}

TEST_CASE("e2m1: what does not fit saturates") {
    const float infinity = std::numeric_limits<float>::infinity();
    for (const float value : {6.0f, 6.5f, 7.0f, 1e30f, infinity}) {
        CHECK(float_to_e2m1(value) == 7);
        CHECK(float_to_e2m1(-value) == 15);
    }
    CHECK(float_to_e2m1(std::numeric_limits<float>::quiet_NaN()) == 7);
    CHECK(float_to_e2m1(1e-40f) == 0);
    CHECK(float_to_e2m1(-0.0f) == 8);
}

TEST_CASE("e2m1: the even k lies in the low nibble") {
    const std::uint8_t packed[] = {pack_e2m1(3, 12), pack_e2m1(15, 0)};
    CHECK(packed[0] == 0xc3);
    CHECK(e2m1_at(packed, 0) == 3);
    CHECK(e2m1_at(packed, 1) == 12);
    CHECK(e2m1_at(packed, 2) == 15);
    CHECK(e2m1_at(packed, 3) == 0);
}
