#include "runtime/formats/bf16.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

using namespace kiln::formats;

TEST_CASE("bf16: every code survives the way to float and back") {
    for (std::uint32_t code = 0; code <= 0xffff; ++code) {
        const auto bits = static_cast<Bf16Bits>(code);
        const float value = bf16_to_float(bits);
        if (std::isnan(value)) {
            CHECK(std::isnan(bf16_to_float(float_to_bf16(value))));
        } else {
            REQUIRE(float_to_bf16(value) == bits);
            REQUIRE(double_to_bf16(value) == bits);
        }
    }
}

TEST_CASE("bf16: ties go to even, half a unit in either direction") {
    // 1.0 is 0x3f80; the last place is 2^-7.
    CHECK(float_to_bf16(1.0f + 0x1p-8f) == 0x3f80);
    CHECK(float_to_bf16(1.0f + 0x3p-8f) == 0x3f82);
    CHECK(float_to_bf16(1.0f + 0x1.0002p-8f) == 0x3f81);
    CHECK(float_to_bf16(-1.0f - 0x3p-8f) == 0xbf82);
    CHECK(double_to_bf16(1.0 + 0x1p-8) == 0x3f80);
    CHECK(double_to_bf16(1.0 + 0x1p-8 + 0x1p-50) == 0x3f81);  // float32 would lose the last term and tie
    CHECK(double_to_bf16(1.0 + 0x3p-8) == 0x3f82);
}

TEST_CASE("bf16: the ends of the range") {
    const float infinity = std::numeric_limits<float>::infinity();
    CHECK(float_to_bf16(std::numeric_limits<float>::max()) == 0x7f80);
    CHECK(double_to_bf16(1e300) == 0x7f80);
    CHECK(double_to_bf16(-1e300) == 0xff80);
    CHECK(float_to_bf16(infinity) == 0x7f80);
    CHECK(double_to_bf16(0x1p-133) == 0x0001);
    CHECK(double_to_bf16(0x1p-134) == 0x0000);  // a tie, to even
    CHECK(double_to_bf16(0x1.8p-133) == 0x0002);
    CHECK(double_to_bf16(-0.0) == 0x8000);
    CHECK(std::isnan(bf16_to_float(float_to_bf16(std::numeric_limits<float>::signaling_NaN()))));
    // A NaN whose payload lies in the lower half alone must not turn into infinity.
    CHECK(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

TEST_CASE("bf16: from double agrees with from float where float is exact") {
    const unsigned seed = 20240607;
    INFO("seed ", seed);
    std::mt19937 random(seed);
    for (int i = 0; i < 200000; ++i) {
        const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
        if (!std::isnan(value)) {
            REQUIRE(double_to_bf16(value) == float_to_bf16(value));
        }
    }
}

TEST_CASE("bf16: the unit is the gap to the next larger magnitude") {
    for (std::uint32_t code = 0; code < 0x7f7f; ++code) {
        const double value = bf16_to_float(static_cast<Bf16Bits>(code));
        const double next = bf16_to_float(static_cast<Bf16Bits>(code + 1));
        REQUIRE(bf16_unit(value) == next - value);
        REQUIRE(bf16_unit(-value) == next - value);
    }
}
