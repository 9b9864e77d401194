// Number formats: every code, every rounding tie, and random numbers against a search for the nearest.
#include "runtime/sim/numeric/minifloat.hpp"

#include "tests/sim/numeric_support.hpp"

using namespace kiln::sim::numeric;
using namespace kiln::sim::test;

namespace {

struct Case {
    Format format;
    Definition definition;
};
constexpr Case kSmall[] = {{Format::e4m3, kE4m3}, {Format::e5m2, kE5m2}, {Format::e2m3, kE2m3},
                           {Format::e3m2, kE3m2}, {Format::e2m1, kE2m1}, {Format::f16, kF16}};

// The magnitude code nearest to `value` (finite, at most the largest), ties to the even code.
unsigned nearest(const Definition& definition, double value) {
    unsigned low = 0;
    unsigned high = definition.largest();
    while (high - low > 1) {
        const unsigned middle = (low + high) / 2;
        (definition.value(middle) <= value ? low : high) = middle;
    }
    const double below = value - definition.value(low);
    const double above = definition.value(high) - value;
    if (below == above)
        return low % 2 == 0 ? low : high;
    return below < above ? low : high;
}

}  // namespace

TEST_CASE("minifloat: every code has the value of its definition") {
    for (const Case& c : kSmall) {
        CAPTURE(c.definition.name);
        for (unsigned code = 0; code < c.definition.codes(); ++code) {
            CAPTURE(code);
            const double expected = c.definition.value(code);
            const double found = as_double(decode(c.format, code));
            if (std::isnan(expected)) {
                REQUIRE(std::isnan(found));
                continue;
            }
            REQUIRE(found == expected);
            REQUIRE(std::signbit(found) == std::signbit(expected));
        }
    }
}

TEST_CASE("minifloat: fp4 has the sixteen values of the format") {
    const double values[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    for (unsigned code = 0; code < 8; ++code) {
        CHECK(as_double(decode(Format::e2m1, code)) == values[code]);
        CHECK(as_double(decode(Format::e2m1, code + 8)) == -values[code]);
    }
    CHECK(std::signbit(as_float(decode(Format::e2m1, 8))));
}

TEST_CASE("minifloat: e4m3 has its largest number at 448 and NaN at 0x7f and 0xff only") {
    CHECK(as_double(decode(Format::e4m3, 0x7e)) == 448);
    CHECK(as_double(decode(Format::e4m3, 0x01)) == std::pow(2.0, -9));
    for (unsigned code = 0; code < 256; ++code)
        CHECK(std::isnan(as_float(decode(Format::e4m3, code))) == ((code & 0x7f) == 0x7f));
}

TEST_CASE("minifloat: every number comes back as its own code") {
    for (const Case& c : kSmall) {
        CAPTURE(c.definition.name);
        for (unsigned code = 0; code <= c.definition.largest(); ++code) {
            const auto bits = as_bits(static_cast<float>(c.definition.value(code)));
            REQUIRE(encode(c.format, bits) == code);
            REQUIRE(encode(c.format, bits | 0x80000000) == (code | c.definition.codes() / 2));
        }
    }
}

TEST_CASE("minifloat: a tie goes to the even code, its neighbours to the nearer one") {
    for (const Case& c : kSmall) {
        CAPTURE(c.definition.name);
        for (unsigned code = 0; code < c.definition.largest(); ++code) {
            CAPTURE(code);
            const double middle = (c.definition.value(code) + c.definition.value(code + 1)) / 2;
            const auto tie = static_cast<float>(middle);
            REQUIRE(double{tie} == middle);
            REQUIRE(encode(c.format, as_bits(tie)) == (code % 2 == 0 ? code : code + 1));
            REQUIRE(encode(c.format, as_bits(std::nextafter(tie, 0.0f))) == code);
            REQUIRE(encode(c.format, as_bits(std::nextafter(tie, 1e30f))) == code + 1);
        }
    }
}

TEST_CASE("minifloat: the ties of fp4 that the format names") {
    const float from[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
    const float to[] = {0, 1, 1, 2, 2, 4, 4};
    for (int i = 0; i < 7; ++i)
        CHECK(as_float(decode(Format::e2m1, encode(Format::e2m1, as_bits(from[i])))) == to[i]);
}

TEST_CASE("minifloat: beyond the largest number") {
    // e4m3: up to 464 rounds to 448, and 464 itself is a tie between 448 (even) and the 480 that is not
    // there.
    CHECK(encode(Format::e4m3, as_bits(464.0f)) == 0x7e);
    CHECK(encode(Format::e4m3, as_bits(-464.0f)) == 0xfe);
    CHECK(encode(Format::e4m3, as_bits(std::nextafter(464.0f, 500.0f))) == 0x7f);
    CHECK(encode(Format::e4m3, as_bits(std::nextafter(-464.0f, -500.0f))) == 0xff);
    CHECK(encode(Format::e4m3, as_bits(3e38f)) == 0x7f);
    CHECK(encode(Format::e4m3, 0x7f800000) == 0x7f);
    CHECK(encode(Format::e4m3, 0xff800000) == 0xff);
    CHECK((encode(Format::e4m3, 0x7fc00000) & 0x7f) == 0x7f);
    // e5m2 and f16: infinity from half a step above the largest on, since that tie's even neighbour is
    // infinity.
    CHECK(encode(Format::e5m2, as_bits(std::nextafter(61440.0f, 0.0f))) == 0x7b);
    CHECK(encode(Format::e5m2, as_bits(61440.0f)) == 0x7c);
    CHECK(encode(Format::e5m2, 0xff800000) == 0xfc);
    CHECK((encode(Format::e5m2, 0x7f800001) & 0x7f) > 0x7c);
    CHECK(encode(Format::f16, as_bits(std::nextafter(65520.0f, 0.0f))) == 0x7bff);
    CHECK(encode(Format::f16, as_bits(65520.0f)) == 0x7c00);
    CHECK((encode(Format::f16, 0x7f800001) & 0x7fff) > 0x7c00);
    // fp4 and fp6 saturate with the sign kept.
    for (const float huge : {7.0f, 1e9f, std::numeric_limits<float>::infinity()}) {
        CHECK(encode(Format::e2m1, as_bits(huge)) == 0x7);
        CHECK(encode(Format::e2m1, as_bits(-huge)) == 0xf);
        CHECK(encode(Format::e2m3, as_bits(8 * huge)) == 0x1f);
        CHECK(encode(Format::e3m2, as_bits(-8 * huge)) == 0x3f);
    }
}

TEST_CASE("minifloat: random numbers round to the nearest code, scaled by any power of two") {
    Random random;
    CAPTURE(random.seed());
    for (const Case& c : kSmall) {
        CAPTURE(c.definition.name);
        const double largest = c.definition.value(c.definition.largest());
        for (int i = 0; i < 20000; ++i) {
            const std::uint32_t bits = random.bits();
            const int exponent = static_cast<int>(random.below(255)) - 127;
            const double x = std::fabs(as_double(bits)) * std::pow(2.0, -exponent);
            if (!(x <= largest))
                continue;
            CAPTURE(bits);
            CAPTURE(exponent);
            const unsigned sign = bits >> 31 ? c.definition.codes() / 2 : 0;
            REQUIRE(encode(c.format, bits, exponent) == (nearest(c.definition, x) | sign));
        }
        for (int i = 0; i < 20000; ++i) {
            const double x = random.uniform(0, largest);
            const auto rounded = static_cast<float>(x);
            REQUIRE(encode(c.format, as_bits(rounded)) == nearest(c.definition, rounded));
        }
    }
}

TEST_CASE("minifloat: decoding with an exponent multiplies by the power of two") {
    for (const Case& c : {kSmall[0], kSmall[1], kSmall[4]}) {
        for (unsigned code = 0; code < c.definition.codes(); ++code) {
            for (int exponent = -127; exponent <= 127; ++exponent) {
                const double exact = c.definition.value(code) * std::pow(2.0, exponent);
                const float found = as_float(decode(c.format, code, exponent));
                if (std::isnan(exact))
                    REQUIRE(std::isnan(found));
                else
                    REQUIRE(found == static_cast<float>(exact));
            }
        }
    }
}
