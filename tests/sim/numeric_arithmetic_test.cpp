// Single floating-point instructions: accuracy, denormals, NaN rules.
#include "runtime/sim/numeric/arithmetic.hpp"

#include "tests/sim/numeric_support.hpp"

using namespace kiln::sim::numeric;
using namespace kiln::sim::test;

namespace {

constexpr std::uint32_t kInf = 0x7f800000;
constexpr std::uint32_t kMinusInf = 0xff800000;
constexpr std::uint32_t kNan = 0x7fc00000;
constexpr std::uint32_t kSignalling = 0x7f800001;
constexpr std::uint32_t kMinusZero = 0x80000000;

// Distance in units of the last place of the float nearest to `exact`.
double ulps(float found, long double exact) {
    const float nearest = static_cast<float>(exact);
    const long double unit = std::nextafter(std::fabs(nearest), INFINITY) - std::fabs(nearest);
    return static_cast<double>(std::fabs(found - exact) / unit);
}

template <class Found, class Exact>
void check_accuracy(double low_exponent, double high_exponent, bool negative_too, Found found, Exact exact) {
    Random random;
    CAPTURE(random.seed());
    for (int i = 0; i < 20000; ++i) {
        float x = static_cast<float>(std::exp2(random.uniform(low_exponent, high_exponent)));
        if (negative_too && random.below(2) == 0)
            x = -x;
        const long double expected = exact(static_cast<long double>(x));
        if (std::fabs(expected) < 0x1.0p-126L || std::fabs(expected) > 0x1.fffffep127L)
            continue;
        CAPTURE(x);
        REQUIRE(ulps(as_float(found(as_bits(x))), expected) <= 1.0);
    }
}

}  // namespace

TEST_CASE("arithmetic: transcendentals are within 1 ULP") {
    check_accuracy(-125, 125, true, v_rcp_f32, [](long double x) { return 1 / x; });
    check_accuracy(-125, 127, false, v_rsq_f32, [](long double x) { return 1 / std::sqrt(x); });
    check_accuracy(-125, 127, false, v_sqrt_f32, [](long double x) { return std::sqrt(x); });
    check_accuracy(-20, 7, true, v_exp_f32, [](long double x) { return std::exp2(x); });
    check_accuracy(-125, 127, false, v_log_f32, [](long double x) { return std::log2(x); });
}

TEST_CASE("arithmetic: transcendentals flush denormals on both sides") {
    CHECK(v_rcp_f32(0x00000001) == kInf);
    CHECK(v_rcp_f32(0x80400000) == kMinusInf);
    CHECK(v_rcp_f32(0x7f000001) == 0);  // 1/x would be denormal
    CHECK(v_rcp_f32(0xff7fffff) == kMinusZero);
    CHECK(v_rcp_f32(0x7e800000) == 0x00800000);  // 2^-126 just is not
    CHECK(v_rsq_f32(0x007fffff) == kInf);
    CHECK(v_sqrt_f32(0x007fffff) == 0);
    CHECK(v_exp_f32(as_bits(-126.5f)) == 0);
    CHECK(v_exp_f32(as_bits(-126.0f)) == 0x00800000);
    CHECK(v_exp_f32(0x00000001) == as_bits(1.0f));
    CHECK(v_log_f32(0x007fffff) == kMinusInf);
}

TEST_CASE("arithmetic: transcendentals at special operands") {
    CHECK(v_rcp_f32(0) == kInf);
    CHECK(v_rcp_f32(kMinusZero) == kMinusInf);
    CHECK(v_rcp_f32(kInf) == 0);
    CHECK(v_rcp_f32(kMinusInf) == kMinusZero);
    CHECK(v_sqrt_f32(kMinusZero) == kMinusZero);
    CHECK(std::isnan(as_float(v_sqrt_f32(as_bits(-1.0f)))));
    CHECK(std::isnan(as_float(v_log_f32(as_bits(-1.0f)))));
    CHECK(v_log_f32(0) == kMinusInf);
    CHECK(v_log_f32(as_bits(8.0f)) == as_bits(3.0f));
    CHECK(v_exp_f32(as_bits(10.0f)) == as_bits(1024.0f));
    CHECK(v_exp_f32(as_bits(128.0f)) == kInf);
    CHECK(v_exp_f32(kMinusInf) == 0);
    CHECK(v_rsq_f32(as_bits(4.0f)) == as_bits(0.5f));
    CHECK(v_sin_f32(as_bits(0.25f)) == as_bits(1.0f));
    CHECK(v_cos_f32(as_bits(-2.0f)) == as_bits(1.0f));
    for (const auto function : {v_rcp_f32, v_rsq_f32, v_sqrt_f32, v_exp_f32, v_log_f32})
        CHECK(function(kSignalling) == (kSignalling | 0x400000));
}

TEST_CASE("arithmetic: min and max prefer numbers to NaN and order the zeros") {
    const std::uint32_t one = as_bits(1.0f);
    const std::uint32_t two = as_bits(2.0f);
    CHECK(v_min_f32(one, two) == one);
    CHECK(v_max_f32(one, two) == two);
    CHECK(v_min_f32(as_bits(-1.0f), as_bits(-2.0f)) == as_bits(-2.0f));
    CHECK(v_max_f32(kMinusInf, as_bits(-2.0f)) == as_bits(-2.0f));
    CHECK(v_min_f32(0, kMinusZero) == kMinusZero);
    CHECK(v_min_f32(kMinusZero, 0) == kMinusZero);
    CHECK(v_max_f32(0, kMinusZero) == 0);
    CHECK(v_max_f32(kMinusZero, 0) == 0);
    CHECK(v_min_f32(kNan, one) == one);
    CHECK(v_max_f32(one, kNan) == one);
    CHECK(v_max_f32(kNan, kNan) == kNan);
    CHECK(v_min_f32(kSignalling, one) == (kSignalling | 0x400000));
    CHECK(v_max_f32(one, kSignalling) == (kSignalling | 0x400000));
}

TEST_CASE("arithmetic: taking numbers apart and putting them together") {
    CHECK(v_ldexp_f32(as_bits(1.5f), 4) == as_bits(24.0f));
    CHECK(v_ldexp_f32(as_bits(1.5f), static_cast<std::uint32_t>(-150)) == 1);  // above half the smallest
    CHECK(v_ldexp_f32(as_bits(1.0f), static_cast<std::uint32_t>(-150)) == 0);  // a tie
    CHECK(v_ldexp_f32(as_bits(-1.0f), 0x7fffffff) == kMinusInf);
    CHECK(v_ldexp_f32(as_bits(-1.0f), 0x80000000) == kMinusZero);
    CHECK(v_ldexp_f32(0x00000001, 149) == as_bits(1.0f));
    CHECK(v_frexp_mant_f32(as_bits(-24.0f)) == as_bits(-0.75f));
    CHECK(v_frexp_exp_i32_f32(as_bits(-24.0f)) == 5);
    CHECK(v_frexp_mant_f32(0x00000001) == as_bits(0.5f));
    CHECK(v_frexp_exp_i32_f32(0x00000001) == static_cast<std::uint32_t>(-148));
    CHECK(v_frexp_exp_i32_f32(kInf) == 0);
    CHECK(v_frexp_mant_f32(kMinusInf) == kMinusInf);
    CHECK(v_fract_f32(as_bits(2.75f)) == as_bits(0.75f));
    CHECK(v_fract_f32(as_bits(-2.75f)) == as_bits(0.25f));
    CHECK(v_fract_f32(as_bits(-1e-20f)) == 0x3f7fffff);
}

TEST_CASE("arithmetic: rounding to integers") {
    const float from[] = {2.5f, -2.5f, 3.5f, -0.5f, 0.49f, 1e20f};
    const float even[] = {2.0f, -2.0f, 4.0f, -0.0f, 0.0f, 1e20f};
    const float zero[] = {2.0f, -2.0f, 3.0f, -0.0f, 0.0f, 1e20f};
    const float down[] = {2.0f, -3.0f, 3.0f, -1.0f, 0.0f, 1e20f};
    const float up[] = {3.0f, -2.0f, 4.0f, -0.0f, 1.0f, 1e20f};
    for (int i = 0; i < 6; ++i) {
        CAPTURE(from[i]);
        CHECK(v_rndne_f32(as_bits(from[i])) == as_bits(even[i]));
        CHECK(v_trunc_f32(as_bits(from[i])) == as_bits(zero[i]));
        CHECK(v_floor_f32(as_bits(from[i])) == as_bits(down[i]));
        CHECK(v_ceil_f32(as_bits(from[i])) == as_bits(up[i]));
    }
    CHECK(v_trunc_f32(kSignalling) == (kSignalling | 0x400000));
}

TEST_CASE("arithmetic: bf16 dot products flush denormals and keep their order of sums") {
    const auto pair = [](float low, float high) { return as_bits(low) >> 16 | (as_bits(high) & 0xffff0000); };
    CHECK(v_dot2_f32_bf16(pair(2, 3), pair(4, 5), as_bits(0.5f)) == as_bits(23.5f));
    CHECK(v_dot2c_f32_bf16(pair(2, 3), pair(4, 5), as_bits(0.5f)) == as_bits(23.5f));
    // 2^-127 is a denormal bf16, whose product with 2^10 would be normal; then a denormal product, and a
    // denormal addend.
    CHECK(v_dot2_f32_bf16(0x00400040, pair(0x1p10f, 0x1p10f), 0) == 0);
    CHECK(v_dot2c_f32_bf16(0x00400040, pair(0x1p10f, 0x1p10f), 0) == 0);
    CHECK(v_dot2_f32_bf16(pair(0x1p10f, 0x1p10f), 0x00400040, 0) == 0);
    CHECK(v_dot2_f32_bf16(pair(0x1p-70f, 0x1p-70f), pair(0x1p-70f, 0x1p-70f), 0) == 0);
    CHECK(v_dot2_f32_bf16(0, 0, as_bits(0x1p-130f)) == 0);
    CHECK(v_dot2c_f32_bf16(0, 0, as_bits(0x1p-130f)) == 0);
    // (1 + -1) + tiny keeps the tiny one; (tiny + 1) + -1 loses it.
    const std::uint32_t ones = pair(1, 1);
    const std::uint32_t signs = pair(1, -1);
    CHECK(v_dot2_f32_bf16(ones, signs, as_bits(0x1p-40f)) == as_bits(0x1p-40f));
    CHECK(v_dot2c_f32_bf16(ones, signs, as_bits(0x1p-40f)) == 0);
}
