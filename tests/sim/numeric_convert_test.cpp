// Conversion instructions: which part of which register, scales, and integers.
#include "runtime/sim/numeric/convert.hpp"

#include <algorithm>

#include "tests/sim/numeric_support.hpp"

using namespace kiln::sim::numeric;
using namespace kiln::sim::test;

namespace {

// Only the exponent field of a scale counts: sign and mantissa are filled with noise.
std::uint32_t noisy_scale(Random& random, unsigned field) {
    return (random.bits() & 0x807fffff) | field << 23;
}
double scale_value(unsigned field) {
    return field == 255 ? std::nan("") : std::pow(2.0, static_cast<int>(field) - 127);
}

bool same_number(float found, double expected) {
    if (std::isnan(expected))
        return std::isnan(found);
    return found == static_cast<float>(expected) && std::signbit(found) == std::signbit(expected);
}

// The bf16 nearest to a double, worked out on the doubles on both sides of it.
std::uint32_t nearest_bf16(double x) {
    if (std::isinf(x))
        return x > 0 ? 0x7f80 : 0xff80;
    const std::uint32_t sign = std::signbit(x) ? 0x8000 : 0;
    unsigned low = 0;
    unsigned high = 0x7f80;
    const auto value = [](unsigned code) { return code == 0x7f80 ? std::pow(2.0, 128) : kBf16.value(code); };
    const double magnitude = std::fabs(x);
    if (magnitude >= value(high))
        return sign | high;
    while (high - low > 1) {
        const unsigned middle = (low + high) / 2;
        (value(middle) <= magnitude ? low : high) = middle;
    }
    const double below = magnitude - value(low);
    const double above = value(high) - magnitude;
    const bool up = above < below || (above == below && low % 2 == 1);
    return sign | (up ? high : low);
}

}  // namespace

TEST_CASE("convert: f32 to bf16 rounds to nearest even and keeps NaN a NaN") {
    Random random;
    CAPTURE(random.seed());
    for (int i = 0; i < 200000; ++i) {
        std::uint32_t bits = random.bits();
        if (i % 4 == 0)
            bits = (bits & 0xffff0000) | 0x8000;  // ties
        CAPTURE(bits);
        const std::uint32_t found = f32_to_bf16(bits);
        if (std::isnan(as_float(bits)))
            REQUIRE(std::isnan(as_float(found << 16)));
        else
            REQUIRE(found == nearest_bf16(as_double(bits)));
    }
    CHECK(f32_to_bf16(0x7f800001) ==
          0x7fc0);  // the payload's upper bits are all zero: must not become infinity
    CHECK(f32_to_bf16(0x7f7fffff) == 0x7f80);
}

TEST_CASE("convert: f32 to f16 toward zero never grows a number") {
    Random random;
    CAPTURE(random.seed());
    for (int i = 0; i < 100000; ++i) {
        const std::uint32_t bits = as_bits(
            static_cast<float>(std::ldexp(random.uniform(-2, 2), static_cast<int>(random.below(48)) - 30)));
        CAPTURE(bits);
        const std::uint32_t code = f32_to_f16_toward_zero(bits);
        const double found = std::fabs(kF16.value(code));
        REQUIRE(found <= std::fabs(as_double(bits)));
        if ((code & 0x7fff) < 0x7bff)
            REQUIRE(kF16.value((code & 0x7fff) + 1) > std::fabs(as_double(bits)));
    }
    CHECK(f32_to_f16_toward_zero(as_bits(1e9f)) == 0x7bff);
    CHECK(f32_to_f16_toward_zero(0xff800000) == 0xfc00);
    CHECK(v_cvt_pkrtz_f16_f32(as_bits(1.0f), as_bits(-1.0f)) == 0xbc003c00);
}

TEST_CASE("convert: v_cvt_pk_fp8_f32 writes one half and keeps the other") {
    CHECK(v_cvt_pk_8bit_f32(Format::e4m3, as_bits(1.0f), as_bits(-448.0f), 0xaabbccdd, 0) == 0xaabbfe38);
    CHECK(v_cvt_pk_8bit_f32(Format::e4m3, as_bits(1.0f), as_bits(-448.0f), 0xaabbccdd, 1) == 0xfe38ccdd);
    CHECK(v_cvt_pk_8bit_f32(Format::e5m2, as_bits(1.0f), as_bits(-2.0f), 0xaabbccdd, 1) == 0xc03cccdd);
    CHECK(v_cvt_pk_8bit_f32(Format::e4m3, as_bits(449.0f), as_bits(465.0f), 0, 0) == 0x7f7e);
}

TEST_CASE("convert: 8-bit numbers to f32, from every byte and half") {
    for (unsigned code = 0; code < 256; ++code) {
        for (unsigned byte = 0; byte < 4; ++byte) {
            const std::uint32_t source = (0x5a5a5a5au & ~(0xffu << (8 * byte))) | code << (8 * byte);
            REQUIRE(same_number(as_float(v_cvt_f32_8bit(Format::e4m3, source, byte)), kE4m3.value(code)));
            REQUIRE(same_number(as_float(v_cvt_f32_8bit(Format::e5m2, source, byte)), kE5m2.value(code)));
            const Pair pair = v_cvt_pk_f32_8bit(Format::e4m3, source, byte / 2);
            REQUIRE(same_number(as_float(pair[byte % 2]), kE4m3.value(code)));
            REQUIRE(same_number(as_float(pair[1 - byte % 2]), kE4m3.value(0x5a)));
        }
    }
}

TEST_CASE("convert: scaled fp4 up, every code in every place under every scale") {
    Random random;
    CAPTURE(random.seed());
    for (unsigned field = 0; field < 256; ++field) {
        for (unsigned code = 0; code < 16; ++code) {
            const std::uint32_t scale = noisy_scale(random, field);
            const unsigned nibble = random.below(8);
            const std::uint32_t source = (random.bits() & ~(0xfu << (4 * nibble))) | code << (4 * nibble);
            const double expected = kE2m1.value(code) * scale_value(field);
            CAPTURE(field);
            CAPTURE(code);
            const Pair wide = v_cvt_scalef32_pk_f32(Format::e2m1, source, scale, nibble / 2);
            REQUIRE(same_number(as_float(wide[nibble % 2]), expected));
            const std::uint32_t bf =
                v_cvt_scalef32_pk_16bit(Format::e2m1, Format::bf16, source, scale, nibble / 2);
            const std::uint32_t half = bf >> (16 * (nibble % 2)) & 0xffff;
            if (field == 255)
                REQUIRE(std::isnan(as_float(half << 16)));
            else
                REQUIRE(half == nearest_bf16(expected));
        }
    }
}

TEST_CASE("convert: scaled 8-bit numbers up, every code under every scale") {
    Random random;
    CAPTURE(random.seed());
    for (unsigned field = 0; field < 256; ++field) {
        for (unsigned code = 0; code < 256; ++code) {
            const std::uint32_t scale = noisy_scale(random, field);
            const unsigned byte = random.below(4);
            const std::uint32_t source = (random.bits() & ~(0xffu << (8 * byte))) | code << (8 * byte);
            const double fp8 = kE4m3.value(code) * scale_value(field);
            const double bf8 = kE5m2.value(code) * scale_value(field);
            CAPTURE(field);
            CAPTURE(code);
            REQUIRE(same_number(
                as_float(v_cvt_scalef32_pk_f32(Format::e4m3, source, scale, byte / 2)[byte % 2]), fp8));
            REQUIRE(same_number(
                as_float(v_cvt_scalef32_pk_f32(Format::e5m2, source, scale, byte / 2)[byte % 2]), bf8));
            REQUIRE(same_number(
                as_float(v_cvt_scalef32_single(Format::e4m3, Format::f32, source, scale, byte)), fp8));
            const std::uint32_t pair =
                v_cvt_scalef32_pk_16bit(Format::e4m3, Format::bf16, source, scale, byte / 2);
            const std::uint32_t half = pair >> (16 * (byte % 2)) & 0xffff;
            if (std::isnan(fp8))
                REQUIRE(std::isnan(as_float(half << 16)));
            else
                REQUIRE(half == nearest_bf16(fp8));
        }
    }
}

TEST_CASE("convert: scaled up to f16 overflows to infinity") {
    // 448 * 2^8 is beyond 65504.
    const std::uint32_t pair = v_cvt_scalef32_pk_16bit(Format::e4m3, Format::f16, 0x7e38, as_bits(256.0f), 0);
    CHECK(pair == 0x7c005c00);
    CHECK(v_cvt_scalef32_single(Format::e4m3, Format::f16, 0x38 << 16, as_bits(2.0f), 2) == 0x4000);
}

TEST_CASE("convert: scaled down to fp4 divides by the scale's power of two, in the right byte") {
    Random random;
    CAPTURE(random.seed());
    for (int i = 0; i < 50000; ++i) {
        const unsigned field = random.below(255);
        const std::uint32_t scale = noisy_scale(random, field);
        const unsigned byte = random.below(4);
        const std::uint32_t old = random.bits();
        std::uint32_t x[2];
        unsigned expected = 0;
        for (int j = 0; j < 2; ++j) {
            // Around the format's range, with ties: multiples of 1/8 up to 8, times the scale.
            const double target = (static_cast<int>(random.below(129)) - 64) / 8.0;
            x[j] = as_bits(static_cast<float>(target * scale_value(field)));
            const double magnitude = std::min(std::fabs(as_double(x[j]) / scale_value(field)), 100.0);
            unsigned best = 0;
            for (unsigned code = 1; code < 8; ++code) {
                const double now = std::fabs(kE2m1.value(code) - magnitude);
                const double then = std::fabs(kE2m1.value(best) - magnitude);
                if (now < then || (now == then && code % 2 == 0))
                    best = code;
            }
            expected |= (best | (x[j] >> 31) << 3) << (4 * j);
        }
        CAPTURE(field);
        CAPTURE(x[0]);
        CAPTURE(x[1]);
        const auto found = v_cvt_scalef32_pk_fp4_f32(x[0], x[1], scale, old, byte);
        REQUIRE(found.has_value());
        REQUIRE(*found == ((old & ~(0xffu << (8 * byte))) | expected << (8 * byte)));
        // The same from bf16, whose numbers are floats.
        const std::uint32_t packed = x[0] >> 16 | (x[1] & 0xffff0000);
        REQUIRE(v_cvt_scalef32_pk_fp4_16bit(Format::bf16, packed, scale, old, byte) ==
                v_cvt_scalef32_pk_fp4_f32(x[0] & 0xffff0000, x[1] & 0xffff0000, scale, old, byte));
    }
}

TEST_CASE("convert: what the hardware does not specify on the way to fp4 is reported") {
    const std::uint32_t one = as_bits(1.0f);
    const std::uint32_t nan = 0x7fc00000;
    CHECK_FALSE(v_cvt_scalef32_pk_fp4_f32(nan, one, one, 0, 0));
    CHECK_FALSE(v_cvt_scalef32_pk_fp4_f32(one, nan, one, 0, 0));
    CHECK_FALSE(v_cvt_scalef32_pk_fp4_f32(one, one, 0x7f800000, 0, 0));
    CHECK_FALSE(v_cvt_scalef32_pk_fp4_16bit(Format::bf16, 0x7fc03f80, one, 0, 0));
    CHECK(v_cvt_scalef32_pk_fp4_f32(0x7f800000, 0xff800000, one, 0, 0) == 0xf7u);  // infinity saturates
}

TEST_CASE("convert: scaled down to 8 bits rounds once and keeps the other half") {
    CHECK(v_cvt_scalef32_pk_8bit_f32(Format::e4m3, as_bits(896.0f), as_bits(-2.0f), as_bits(2.9f), 0x11223344,
                                     1) == 0xb87e3344);
    CHECK(v_cvt_scalef32_pk_8bit_16bit(Format::e4m3, Format::bf16, 0xc0004460, as_bits(2.0f), 0x11223344,
                                       0) == 0x1122b87e);
    CHECK(v_cvt_scalef32_pk_8bit_16bit(Format::e5m2, Format::f16, 0xc0003c00, as_bits(1.0f), 0, 1) ==
          0xc03c0000);
    // 2^-10 of the scale is half the smallest e4m3 number: a tie to zero, and anything more rounds up.
    const auto small = [](float x) {
        return v_cvt_scalef32_pk_8bit_f32(Format::e4m3, as_bits(x), 0, as_bits(1.0f), 0, 0) & 0xff;
    };
    CHECK(small(0x1p-10f) == 0);
    CHECK(small(std::nextafter(0x1p-10f, 1.0f)) == 1);
    CHECK(v_cvt_scalef32_pk_8bit_f32(Format::e4m3, as_bits(1.0f), 0, 0x7f800000, 0, 0) == 0x7f7f);
}

TEST_CASE("convert: the integers next to a float") {
    CHECK(v_cvt_rpi_i32_f32(as_bits(2.5f)) == 3);
    CHECK(v_cvt_rpi_i32_f32(as_bits(-2.5f)) == static_cast<std::uint32_t>(-2));
    CHECK(v_cvt_flr_i32_f32(as_bits(-2.5f)) == static_cast<std::uint32_t>(-3));
    CHECK(v_cvt_flr_i32_f32(as_bits(3e9f)) == 0x7fffffff);
    CHECK(v_cvt_flr_i32_f32(as_bits(-3e9f)) == 0x80000000);
    CHECK(v_cvt_flr_i32_f32(0x7fc00000) == 0);
}
