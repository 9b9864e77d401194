#include "runtime/formats/e4m3.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

using namespace kiln::formats;

TEST_CASE("e4m3: landmarks of the format") {
    CHECK(e4m3_to_float(0x00) == 0.0f);
    CHECK(std::signbit(e4m3_to_float(0x80)));
    CHECK(e4m3_to_float(0x01) == 0x1p-9f);  // the smallest subnormal
    CHECK(e4m3_to_float(0x07) == 7 * 0x1p-9f);
    CHECK(e4m3_to_float(0x08) == 0x1p-6f);  // the smallest normal
    CHECK(e4m3_to_float(0x38) == 1.0f);
    CHECK(e4m3_to_float(0x39) == 1.125f);
    CHECK(e4m3_to_float(0xb8) == -1.0f);
    CHECK(e4m3_to_float(0x7e) == 448.0f);
    CHECK(std::isnan(e4m3_to_float(0x7f)));
    CHECK(std::isnan(e4m3_to_float(0xff)));
}

TEST_CASE("e4m3: codes ascend, and every code survives the way to float and back") {
    for (int code = 0; code < 0x7f; ++code) {
        const auto positive = static_cast<std::uint8_t>(code);
        const auto negative = static_cast<std::uint8_t>(code | 0x80);
        CHECK(float_to_e4m3(e4m3_to_float(positive)) == positive);
        CHECK(float_to_e4m3(e4m3_to_float(negative)) == negative);
        if (code > 0) {
            CHECK(e4m3_to_float(positive) > e4m3_to_float(static_cast<std::uint8_t>(code - 1)));
        }
    }
}

TEST_CASE("e4m3: to nearest, ties to the even code, by search over all codes") {
    const auto nearest = [](double value) {
        int best = 0;
        for (int code = 1; code < 0x7f; ++code) {
            const double old_gap =
                std::fabs(value - static_cast<double>(e4m3_to_float(static_cast<std::uint8_t>(best))));
            const double gap =
                std::fabs(value - static_cast<double>(e4m3_to_float(static_cast<std::uint8_t>(code))));
            if (gap < old_gap || (gap == old_gap && code % 2 == 0)) {
                best = code;
            }
        }
        return best;
    };
    for (int code = 0; code < 0x7e; ++code) {
        const float low = e4m3_to_float(static_cast<std::uint8_t>(code));
        const float high = e4m3_to_float(static_cast<std::uint8_t>(code + 1));
        const float middle = (low + high) / 2;
        for (const float value : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1000.0f)}) {
            CAPTURE(value);
            CHECK(float_to_e4m3(value) == nearest(value));
            CHECK(float_to_e4m3(-value) == (nearest(value) | 0x80));
        }
    }
    const unsigned seed = 7;
    INFO("seed ", seed);
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> exponent(-12.0f, 8.8f);
    for (int i = 0; i < 20000; ++i) {
        const float value = std::exp2(exponent(random));
        if (value <= 448.0f) {
            REQUIRE(float_to_e4m3(value) == nearest(value));
        }
    }
}

TEST_CASE("e4m3: what does not fit") {
    CHECK(float_to_e4m3(464.0f) == 0x7e);  // half way to the code that would be NaN: to even
    CHECK(float_to_e4m3(std::nextafter(464.0f, 500.0f)) == 0x7f);
    CHECK(float_to_e4m3(-1e30f) == 0xff);
    CHECK(float_to_e4m3(std::numeric_limits<float>::infinity()) == 0x7f);
    CHECK(float_to_e4m3(std::numeric_limits<float>::quiet_NaN()) == 0x7f);
    CHECK(float_to_e4m3(0x1p-10f) == 0x00);  // half the smallest: a tie, to even
    CHECK(float_to_e4m3(0x1.8p-10f) == 0x01);
    CHECK(float_to_e4m3(1e-40f) == 0x00);
    CHECK(float_to_e4m3(-0.0f) == 0x80);
}
