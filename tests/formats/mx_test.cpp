#include "runtime/formats/mx.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "runtime/formats/e2m1.hpp"
#include "runtime/formats/e4m3.hpp"
#include "runtime/formats/e8m0.hpp"

using namespace kiln::formats;

namespace {

using Group = std::array<Bf16Bits, kMxGroup>;

struct Quantised {
    std::uint8_t scale = 0;
    std::vector<std::uint8_t> q;

    [[nodiscard]] float decoded(MxType type, std::size_t k) const {
        return type == MxType::e2m1 ? e2m1_to_float(e2m1_at(q, k)) : e4m3_to_float(q[k]);
    }
};

Quantised quantise(const Group& x, MxType type, AmaxFloor floor) {
    Quantised result;
    result.q.resize(mx_bytes(type, kMxGroup));
    result.scale = quantise_group_mx(x, type, floor, result.q);
    return result;
}

float largest(MxType type) {
    return type == MxType::e2m1 ? 6.0f : 448.0f;
}

}  // namespace

TEST_CASE("e8m0: every code") {
    for (int code = 0; code < 255; ++code) {
        CHECK(e8m0_to_float(static_cast<std::uint8_t>(code)) == std::exp2(static_cast<float>(code - 127)));
    }
    CHECK(std::isnan(e8m0_to_float(255)));
    // From 1 on, the code shifted into the exponent is the value; 0 alone is not.
    CHECK(e8m0_to_float(1) == std::bit_cast<float>(1u << 23));
    CHECK(e8m0_to_float(0) != std::bit_cast<float>(0u << 23));
}

TEST_CASE("MX: the published examples") {
    CHECK(mx_scale(6.0f, MxType::e2m1, AmaxFloor::none) == 127);
    CHECK(mx_scale(6.03125f, MxType::e2m1, AmaxFloor::none) == 128);
    CHECK(mx_scale(3.0f, MxType::e2m1, AmaxFloor::none) == 126);
    CHECK(mx_scale(1.0f, MxType::e2m1, AmaxFloor::none) == 125);
    CHECK(mx_scale(448.0f, MxType::e4m3fn, AmaxFloor::none) == 127);
    for (const auto& [type, floored] : {std::pair{MxType::e2m1, 92}, {MxType::e4m3fn, 85}}) {
        CHECK(mx_scale(0.0f, type, AmaxFloor::at_1e_10) == floored);
        CHECK(mx_scale(0.0f, type, AmaxFloor::none) == 0);
    }
}

TEST_CASE("MX: for every bf16 amax the scale is the smallest power of two that keeps it in range") {
    for (const MxType type : {MxType::e2m1, MxType::e4m3fn}) {
        for (std::uint32_t code = 1; code < 0x7f80; ++code) {
            const float amax = bf16_to_float(static_cast<Bf16Bits>(code));
            // The bytes of a float32 division, as public quantisers have it.
            const auto divided = std::bit_cast<std::uint32_t>(amax / largest(type));
            const std::uint32_t expected = (divided >> 23) + ((divided & 0x7fffff) != 0 ? 1 : 0);
            const std::uint8_t scale = mx_scale(amax, type, AmaxFloor::none);
            REQUIRE(scale == expected);
            const double wide = amax, one = std::ldexp(1.0, scale - 127);
            REQUIRE(wide <= one * largest(type));
            // Denormals cannot fall below the scale 1.
            REQUIRE((scale == 1 || wide > one / 2 * largest(type)));
            REQUIRE(mx_scale(amax, type, AmaxFloor::at_1e_10) ==
                    mx_scale(std::max(amax, 1e-10f), type, AmaxFloor::none));
        }
    }
}

TEST_CASE("MX: each element is the nearest value of x / scale, for every bf16 beside every amax") {
    const unsigned seed = 23;
    INFO("seed ", seed);
    std::mt19937 random(seed);
    for (const MxType type : {MxType::e2m1, MxType::e4m3fn}) {
        for (int i = 0; i < 4000; ++i) {
            // An amax of any exponent, its neighbours some octaves below.
            Group x{};
            const auto top = static_cast<std::uint32_t>(1 + random() % 0x7f7f);
            for (Bf16Bits& bits : x) {
                const auto below = static_cast<std::uint32_t>(random() % 1500);
                bits = static_cast<Bf16Bits>((top > below ? top - below : 0) | (random() & 1) << 15);
            }
            x[random() % kMxGroup] = static_cast<Bf16Bits>(top);
            const Quantised found = quantise(x, type, AmaxFloor::none);
            const double scale = e8m0_to_float(found.scale);
            for (std::size_t k = 0; k < kMxGroup; ++k) {
                const double wanted = bf16_to_float(x[k]) / scale;
                const double encoded = found.decoded(type, k);
                REQUIRE(std::fabs(wanted) <= static_cast<double>(largest(type)));
                REQUIRE(std::signbit(wanted) == std::signbit(encoded));
                for (int code = 0; code < (type == MxType::e2m1 ? 8 : 0x7f); ++code) {
                    const auto other = static_cast<std::uint8_t>(code);
                    const double magnitude =
                        type == MxType::e2m1 ? e2m1_to_float(other) : e4m3_to_float(other);
                    REQUIRE(std::fabs(std::fabs(wanted) - std::fabs(encoded)) <=
                            std::fabs(std::fabs(wanted) - magnitude));
                }
            }
        }
    }
}

TEST_CASE("MX: a zero group is zero bytes, signs kept") {
    Group x{};
    x[5] = 0x8000;
    const Quantised fp4 = quantise(x, MxType::e2m1, AmaxFloor::none);
    CHECK(fp4.scale == 0);
    const Quantised fp8 = quantise(x, MxType::e4m3fn, AmaxFloor::at_1e_10);
    CHECK(fp8.scale == 85);
    for (std::size_t k = 0; k < kMxGroup; ++k) {
        CHECK(e2m1_at(fp4.q, k) == (k == 5 ? 8 : 0));
        CHECK(fp8.q[k] == (k == 5 ? 0x80 : 0));
    }
}

TEST_CASE("MX: an infinity or a NaN gives a NaN scale with the floor, and the largest without") {
    for (const Bf16Bits bits : {0x7f80, 0xff80, 0x7fc0, 0xffff, 0x7f81}) {
        Group x{};
        x[3] = 0x3f80;
        x[20] = bits;
        for (const MxType type : {MxType::e2m1, MxType::e4m3fn}) {
            CHECK(quantise(x, type, AmaxFloor::at_1e_10).scale == 255);
            CHECK(quantise(x, type, AmaxFloor::none).scale == 254);
        }
    }
}

TEST_CASE("MX: a row is its groups one after the other") {
    const unsigned seed = 29;
    INFO("seed ", seed);
    std::mt19937 random(seed);
    std::vector<Bf16Bits> x(5 * kMxGroup);
    std::generate(x.begin(), x.end(), [&] { return static_cast<Bf16Bits>(random() % 0x7f00); });
    for (const MxType type : {MxType::e2m1, MxType::e4m3fn}) {
        std::vector<std::uint8_t> q(mx_bytes(type, x.size())), scales(5);
        quantise_1x32(x, type, AmaxFloor::at_1e_10, q, scales);
        for (std::size_t group = 0; group < 5; ++group) {
            Group one{};
            std::copy_n(&x[group * kMxGroup], kMxGroup, one.begin());
            const Quantised alone = quantise(one, type, AmaxFloor::at_1e_10);
            CHECK(alone.scale == scales[group]);
            CHECK(std::equal(alone.q.begin(), alone.q.end(), &q[group * alone.q.size()]));
        }
    }
}
