#include "device/convert.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>

using namespace kiln::device;

namespace {

// The nearest bf16 by distance in double, which holds both neighbours and their middle exactly.
std::uint16_t nearest_bf16(float value) {
    const auto below = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);  // towards zero
    const auto above = static_cast<std::uint16_t>(below + 1);
    const auto magnitude = [](std::uint16_t bits) {
        if ((bits & 0x7fffu) == 0x7f80u) {
            return std::ldexp(1.0, 128);  // where the next binade would begin
        }
        return std::fabs(static_cast<double>(std::bit_cast<float>(std::uint32_t{bits} << 16)));
    };
    const double distance_below = std::fabs(static_cast<double>(value)) - magnitude(below);
    const double distance_above = magnitude(above) - std::fabs(static_cast<double>(value));
    if (distance_below == distance_above) {
        return (below & 1u) == 0 ? below : above;
    }
    return distance_below < distance_above ? below : above;
}

}  // namespace

static_assert(f32_to_bf16(1.0F) == 0x3f80 && bf16_to_f32(0xc000) == -2.0F,
              "both work in constant expressions");
static_assert(e4m3_to_f32(0x7e) == kE4m3Max);

TEST_CASE("bf16: every code survives the way to float32 and back") {
    for (std::uint32_t code = 0; code < 0x10000; ++code) {
        const auto bits = static_cast<bf16_bits>(code);
        const float value = bf16_to_f32(bits);
        REQUIRE(std::bit_cast<std::uint32_t>(value) == code << 16);
        if (std::isnan(value)) {
            REQUIRE(std::isnan(bf16_to_f32(f32_to_bf16(value))));
        } else {
            REQUIRE(f32_to_bf16(value) == bits);
        }
    }
}

TEST_CASE("bf16: rounding is to nearest, ties to even, for every upper half and at the ends") {
    const unsigned seed = 5;
    INFO("seed ", seed);
    std::mt19937 random(seed);
    for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
        if ((upper & 0x7f80u) == 0x7f80u) {
            continue;
        }
        for (const std::uint32_t lower :
             {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu, static_cast<std::uint32_t>(random() & 0xffffu)}) {
            const float value = std::bit_cast<float>(upper << 16 | lower);
            REQUIRE(f32_to_bf16(value) == nearest_bf16(value));
        }
    }
}

TEST_CASE("bf16: a NaN stays a NaN, also one whose upper half looks like infinity") {
    CHECK(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
    CHECK(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0xffffffffu)))));
    CHECK(f32_to_bf16(INFINITY) == 0x7f80);
    CHECK(f32_to_bf16(-INFINITY) == 0xff80);
}

TEST_CASE("e4m3: every code has the value of its fields") {
    for (int code = 0; code < 256; ++code) {
        const float value = e4m3_to_f32(static_cast<u8>(code));
        const int exponent = code >> 3 & 15;
        const int mantissa = code & 7;
        if (exponent == 15 && mantissa == 7) {
            REQUIRE(std::isnan(value));
            continue;
        }
        const double magnitude =
            exponent == 0 ? std::ldexp(mantissa / 8.0, -6) : std::ldexp(1 + mantissa / 8.0, exponent - 7);
        REQUIRE(std::fabs(static_cast<double>(value)) == magnitude);
        REQUIRE(std::signbit(value) == (code >= 128));
    }
}
