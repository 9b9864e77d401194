// Division: the sequence that clang emits for n / d, step by step, must end at the IEEE quotient.
#include "runtime/sim/numeric/arithmetic.hpp"
#include "tests/sim/numeric_support.hpp"

using namespace kiln::sim::numeric;
using namespace kiln::sim::test;

namespace {

constexpr std::uint32_t kSign = 0x80000000;

// `rcp_error` moves the reciprocal by that many units in the last place: the hardware's has up to one.
std::uint32_t divide(std::uint32_t n, std::uint32_t d, int rcp_error) {
    const std::uint32_t one = as_bits(1.0f);
    const auto scaled_d = v_div_scale_f32(d, d, n);
    const auto scaled_n = v_div_scale_f32(n, d, n);
    const std::uint32_t minus_d = scaled_d.value ^ kSign;
    std::uint32_t r = v_rcp_f32(scaled_d.value);
    const std::uint32_t magnitude = r & ~kSign;
    if (magnitude >= 0x01000000 && magnitude < 0x7f000000)
        r += static_cast<std::uint32_t>(rcp_error);
    const std::uint32_t e = v_fma_f32(minus_d, r, one);
    r = v_fma_f32(e, r, r);
    std::uint32_t q = as_bits(as_float(scaled_n.value) * as_float(r));
    const std::uint32_t first = v_fma_f32(minus_d, q, scaled_n.value);
    q = v_fma_f32(first, r, q);
    const std::uint32_t second = v_fma_f32(minus_d, q, scaled_n.value);
    return v_div_fixup_f32(v_div_fmas_f32(second, r, q, scaled_n.vcc), d, n);
}

bool is_the_quotient(std::uint32_t n, std::uint32_t d, int rcp_error) {
    const float expected = as_float(n) / as_float(d);
    const std::uint32_t found = divide(n, d, rcp_error);
    if (std::isnan(expected))
        return std::isnan(as_float(found));
    return found == as_bits(expected);
}

const std::uint32_t kEdges[] = {
    0x00000000, 0x00000001, 0x00000002, 0x00000003, 0x003fffff, 0x00400000, 0x007fffff, 0x00800000,
    0x00800001, 0x00ffffff, 0x01000000, 0x0b800000, 0x0bffffff, 0x0c000000, 0x1f800000, 0x20000000,
    0x3effffff, 0x3f000000, 0x3f7fffff, 0x3f800000, 0x3f800001, 0x3fffffff, 0x40000000, 0x40400000,
    0x43e00000, 0x5f800000, 0x7e000000, 0x7e7fffff, 0x7e800000, 0x7e800001, 0x7effffff, 0x7f000000,
    0x7f000001, 0x7f7ffffe, 0x7f7fffff, 0x7f800000, 0x7fc00000, 0x7f800001};

}  // namespace

TEST_CASE("division: every pair of edge operands gives the IEEE quotient") {
    for (const std::uint32_t n : kEdges) {
        for (const std::uint32_t d : kEdges) {
            CAPTURE(n);
            CAPTURE(d);
            REQUIRE(is_the_quotient(n, d, 0));
            REQUIRE(is_the_quotient(n | kSign, d, 0));
            REQUIRE(is_the_quotient(n, d | kSign, 0));
        }
    }
}

TEST_CASE(
    "division: random operands of any exponent give the IEEE quotient, with any reciprocal within 1 ULP") {
    Random random;
    CAPTURE(random.seed());
    for (int i = 0; i < 1000000; ++i) {
        const std::uint32_t n = random.bits();
        const std::uint32_t d = random.bits();
        const int error = static_cast<int>(random.below(3)) - 1;
        CAPTURE(n);
        CAPTURE(d);
        CAPTURE(error);
        REQUIRE(is_the_quotient(n, d, error));
    }
}

TEST_CASE("division: quotients that are denormal or near overflow") {
    Random random;
    CAPTURE(random.seed());
    for (int i = 0; i < 400000; ++i) {
        // Exponents that put the quotient within 2^-152 .. 2^-120, or 2^120 .. 2^130.
        const int distance =
            i % 2 == 0 ? -152 + static_cast<int>(random.below(33)) : 120 + static_cast<int>(random.below(11));
        const int d_field = 1 + static_cast<int>(random.below(254));
        const int n_field = d_field + distance;
        if (n_field < 0 || n_field > 254)
            continue;
        const std::uint32_t n = static_cast<std::uint32_t>(n_field) << 23 | (random.bits() & 0x7fffff);
        const std::uint32_t d = static_cast<std::uint32_t>(d_field) << 23 | (random.bits() & 0x7fffff);
        const int error = static_cast<int>(random.below(3)) - 1;
        CAPTURE(n);
        CAPTURE(d);
        CAPTURE(error);
        REQUIRE(is_the_quotient(n, d, error));
    }
}

TEST_CASE("division: reciprocals, as the quantisers form them") {
    Random random;
    CAPTURE(random.seed());
    for (int i = 0; i < 500000; ++i) {
        const std::uint32_t d = random.bits();
        CAPTURE(d);
        REQUIRE(is_the_quotient(as_bits(1.0f), d, 0));
    }
}

TEST_CASE("division: div_scale flags only what div_fmas has to undo") {
    const auto flag = [](float n, float d) {
        return v_div_scale_f32(as_bits(n), as_bits(d), as_bits(n)).vcc;
    };
    CHECK_FALSE(flag(1.0f, 3.0f));
    CHECK_FALSE(flag(1e-20f, 1e-40f));
    CHECK_FALSE(flag(1.0f, 0.0f));
    CHECK(flag(1e30f, 1e-8f));   // near overflow
    CHECK(flag(1e-30f, 1e10f));  // denormal quotient
    CHECK(std::isnan(as_float(v_div_scale_f32(0, 0, as_bits(1.0f)).value)));
}

TEST_CASE("division: the f64 sequence gives the IEEE quotient") {
    Random random;
    CAPTURE(random.seed());
    const auto minus = [](std::uint64_t x) { return x ^ std::uint64_t{1} << 63; };
    const auto fma = [](std::uint64_t a, std::uint64_t b, std::uint64_t c) {
        return to_bits(std::fma(to_double(a), to_double(b), to_double(c)));
    };
    for (int i = 0; i < 100000; ++i) {
        const double n = std::ldexp(random.uniform(-2, 2), static_cast<int>(random.below(400)) - 200);
        const double d = std::ldexp(random.uniform(-2, 2), static_cast<int>(random.below(400)) - 200);
        const auto nb = to_bits(n);
        const auto db = to_bits(d);
        const auto scaled_d = v_div_scale_f64(db, db, nb);
        const auto scaled_n = v_div_scale_f64(nb, db, nb);
        // clang refines the reciprocal twice before the quotient.
        std::uint64_t r = v_rcp_f64(scaled_d.value);
        const auto one = to_bits(1.0);
        for (int step = 0; step < 2; ++step)
            r = fma(fma(minus(scaled_d.value), r, one), r, r);
        const auto q = to_bits(to_double(scaled_n.value) * to_double(r));
        const auto error = fma(minus(scaled_d.value), q, scaled_n.value);
        const auto found = v_div_fixup_f64(v_div_fmas_f64(error, r, q, scaled_n.vcc), db, nb);
        CAPTURE(n);
        CAPTURE(d);
        REQUIRE(to_double(found) == n / d);
    }
}
