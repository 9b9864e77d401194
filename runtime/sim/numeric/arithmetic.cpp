#include "runtime/sim/numeric/arithmetic.hpp"

#include <algorithm>
#include <numbers>

namespace kiln::sim::numeric {
namespace {

// One transcendental: NaN comes back quiet, `function` is computed in double and rounded once.
template <class Function>
std::uint32_t transcendental(std::uint32_t x, Function function) {
    if (is_nan(x))
        return quiet(x);
    const double result = function(double{to_float(flush_denormal(x))});
    if (std::isnan(result))
        return kQuietNan;
    return flush_denormal(to_bits(static_cast<float>(result)));
}

// An order on number bits in which -0 is below +0.
std::int32_t ordered(std::uint32_t x) {
    const auto bits = static_cast<std::int32_t>(x);
    return bits ^ ((bits >> 31) & 0x7fffffff);
}
std::uint32_t lesser(std::uint32_t a, std::uint32_t b) {
    return ordered(a) < ordered(b) ? a : b;
}
std::uint32_t greater(std::uint32_t a, std::uint32_t b) {
    return ordered(a) < ordered(b) ? b : a;
}

bool is_signalling(std::uint32_t x) {
    return is_nan(x) && (x & 0x400000) == 0;
}

template <class Pick>
std::uint32_t pick_number(std::uint32_t a, std::uint32_t b, Pick pick) {
    // IEEE mode: a signalling NaN is an invalid operation, whose result is a quiet NaN.
    if (is_signalling(a))
        return quiet(a);
    if (is_signalling(b))
        return quiet(b);
    if (is_nan(a))
        return b;
    if (is_nan(b))
        return a;
    return pick(a, b);
}

template <class Function>
std::uint32_t rounded(std::uint32_t x, Function function) {
    return is_nan(x) ? quiet(x) : to_bits(function(to_float(x)));
}

}  // namespace

std::uint32_t v_rcp_f32(std::uint32_t x) {
    return transcendental(x, [](double v) { return 1.0 / v; });
}
std::uint32_t v_rsq_f32(std::uint32_t x) {
    return transcendental(x, [](double v) { return 1.0 / std::sqrt(v); });
}
std::uint32_t v_sqrt_f32(std::uint32_t x) {
    return transcendental(x, [](double v) { return std::sqrt(v); });
}
std::uint32_t v_exp_f32(std::uint32_t x) {
    return transcendental(x, [](double v) { return std::exp2(v); });
}
std::uint32_t v_log_f32(std::uint32_t x) {
    return transcendental(x, [](double v) { return std::log2(v); });
}
std::uint32_t v_sin_f32(std::uint32_t x) {
    return transcendental(x, [](double v) { return std::sin(2 * std::numbers::pi * (v - std::floor(v))); });
}
std::uint32_t v_cos_f32(std::uint32_t x) {
    return transcendental(x, [](double v) { return std::cos(2 * std::numbers::pi * (v - std::floor(v))); });
}

std::uint64_t v_rcp_f64(std::uint64_t x) {
    return to_bits(1.0 / to_double(x));
}
std::uint64_t v_rsq_f64(std::uint64_t x) {
    return to_bits(1.0 / std::sqrt(to_double(x)));
}
std::uint64_t v_sqrt_f64(std::uint64_t x) {
    return to_bits(std::sqrt(to_double(x)));
}

std::uint32_t v_min_f32(std::uint32_t a, std::uint32_t b) {
    return pick_number(a, b, lesser);
}
std::uint32_t v_max_f32(std::uint32_t a, std::uint32_t b) {
    return pick_number(a, b, greater);
}

std::uint32_t v_ldexp_f32(std::uint32_t x, std::uint32_t exponent) {
    // Beyond 300 either way every number is already infinite or zero.
    const int bounded = std::clamp(static_cast<int>(exponent), -400, 400);
    return rounded(x, [bounded](float v) { return std::ldexp(v, bounded); });
}

std::uint32_t v_frexp_mant_f32(std::uint32_t x) {
    if (is_nan(x) || (x & ~kSignBit) == kInfinity)
        return quiet(x);
    int exponent = 0;
    return to_bits(std::frexp(to_float(x), &exponent));
}

std::uint32_t v_frexp_exp_i32_f32(std::uint32_t x) {
    if ((x & kInfinity) == kInfinity)
        return 0;
    int exponent = 0;
    (void)std::frexp(to_float(x), &exponent);
    return static_cast<std::uint32_t>(exponent);
}

std::uint32_t v_fract_f32(std::uint32_t x) {
    if (is_nan(x))
        return quiet(x);
    if ((x & ~kSignBit) == kInfinity)
        return kQuietNan;
    const float value = to_float(x);
    // A tiny negative number would round up to 1.
    return to_bits(std::min(value - std::floor(value), to_float(0x3f7fffff)));
}

std::uint32_t v_trunc_f32(std::uint32_t x) {
    return rounded(x, [](float v) { return std::trunc(v); });
}
std::uint32_t v_ceil_f32(std::uint32_t x) {
    return rounded(x, [](float v) { return std::ceil(v); });
}
std::uint32_t v_floor_f32(std::uint32_t x) {
    return rounded(x, [](float v) { return std::floor(v); });
}
std::uint32_t v_rndne_f32(std::uint32_t x) {
    return rounded(x, [](float v) { return std::nearbyint(v); });
}

namespace {

float flushed(float x) {
    return to_float(flush_denormal(to_bits(x)));
}
float low_bf16(std::uint32_t x) {
    return to_float(flush_denormal(x << 16));
}
float high_bf16(std::uint32_t x) {
    return to_float(flush_denormal(x & 0xffff0000));
}

}  // namespace

std::uint32_t v_dot2_f32_bf16(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const float products = flushed(low_bf16(a) * low_bf16(b)) + flushed(high_bf16(a) * high_bf16(b));
    return flush_denormal(to_bits(flushed(products) + to_float(flush_denormal(c))));
}

std::uint32_t v_dot2c_f32_bf16(std::uint32_t a, std::uint32_t b, std::uint32_t d) {
    const float first = to_float(flush_denormal(d)) + flushed(low_bf16(a) * low_bf16(b));
    return flush_denormal(to_bits(flushed(first) + flushed(high_bf16(a) * high_bf16(b))));
}

}  // namespace kiln::sim::numeric
