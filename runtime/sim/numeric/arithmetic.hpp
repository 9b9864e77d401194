// Floating-point instructions whose result needs more than a plain C++ operator, one lane at a time. Each
// function is named after its instruction; arguments and results are register bits with neg and abs applied.
// IEEE mode is on, as hipRTC sets it: signalling NaNs come back quiet.
//
// f32 add, sub, mul and fma are the host's own with its default modes (nearest even, denormals kept), which
// is what the kernel descriptor asks for; the caller compiles with -ffp-contract=off.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "runtime/sim/numeric/minifloat.hpp"

namespace kiln::sim::numeric {

constexpr float to_float(std::uint32_t bits) {
    return std::bit_cast<float>(bits);
}
constexpr std::uint32_t to_bits(float x) {
    return std::bit_cast<std::uint32_t>(x);
}
constexpr double to_double(std::uint64_t bits) {
    return std::bit_cast<double>(bits);
}
constexpr std::uint64_t to_bits(double x) {
    return std::bit_cast<std::uint64_t>(x);
}

constexpr std::uint32_t quiet(std::uint32_t x) {
    return is_nan(x) ? x | 0x400000 : x;
}
// A denormal becomes zero with its sign.
constexpr std::uint32_t flush_denormal(std::uint32_t x) {
    return (x & 0x7f800000) == 0 ? x & kSignBit : x;
}

// Transcendentals: within 1 ULP (here: correctly rounded but for the rarest ties), denormals flushed on both
// sides.
std::uint32_t v_rcp_f32(std::uint32_t x);  // also v_rcp_iflag_f32, which differs in exception flags only
std::uint32_t v_rsq_f32(std::uint32_t x);
std::uint32_t v_sqrt_f32(std::uint32_t x);
std::uint32_t v_exp_f32(std::uint32_t x);  // 2^x
std::uint32_t v_log_f32(std::uint32_t x);  // log2(x)
std::uint32_t v_sin_f32(std::uint32_t x);  // sin(2 pi x)
std::uint32_t v_cos_f32(std::uint32_t x);
std::uint64_t v_rcp_f64(std::uint64_t x);
std::uint64_t v_rsq_f64(std::uint64_t x);
std::uint64_t v_sqrt_f64(std::uint64_t x);

// Division: clang emits div_scale twice, rcp, a chain of fma, div_fmas and div_fixup for n / d.
struct DivScale32 {
    std::uint32_t value;
    bool vcc;
};
struct DivScale64 {
    std::uint64_t value;
    bool vcc;
};
// `value` is the one to scale: bitwise the denominator or the numerator.
DivScale32 v_div_scale_f32(std::uint32_t value, std::uint32_t denominator, std::uint32_t numerator);
// fma, times 2^64 or 2^-64 when vcc, with a single rounding.
std::uint32_t v_div_fmas_f32(std::uint32_t a, std::uint32_t b, std::uint32_t c, bool vcc);
std::uint32_t v_div_fixup_f32(std::uint32_t quotient, std::uint32_t denominator, std::uint32_t numerator);
DivScale64 v_div_scale_f64(std::uint64_t value, std::uint64_t denominator, std::uint64_t numerator);
std::uint64_t v_div_fmas_f64(std::uint64_t a, std::uint64_t b, std::uint64_t c, bool vcc);
std::uint64_t v_div_fixup_f64(std::uint64_t quotient, std::uint64_t denominator, std::uint64_t numerator);

// Minimum and maximum: of one NaN and a number, the number; -0 is below +0; a signalling NaN comes back
// quiet.
std::uint32_t v_min_f32(std::uint32_t a, std::uint32_t b);
std::uint32_t v_max_f32(std::uint32_t a, std::uint32_t b);

std::uint32_t v_ldexp_f32(std::uint32_t x, std::uint32_t exponent);  // one rounding, saturating exponent
std::uint32_t v_frexp_mant_f32(std::uint32_t x);     // in [0.5, 1); infinity and NaN unchanged
std::uint32_t v_frexp_exp_i32_f32(std::uint32_t x);  // 0 for zero, infinity and NaN
std::uint32_t v_fract_f32(std::uint32_t x);          // x - floor(x), below 1
std::uint32_t v_trunc_f32(std::uint32_t x);
std::uint32_t v_ceil_f32(std::uint32_t x);
std::uint32_t v_floor_f32(std::uint32_t x);
std::uint32_t v_rndne_f32(std::uint32_t x);

// Dot products of two bf16 pairs: denormals are flushed on input and output whatever MODE says, each product
// and sum rounds to float. Whether the hardware fuses them is not specified.
std::uint32_t v_dot2_f32_bf16(std::uint32_t a, std::uint32_t b, std::uint32_t c);   // (a0*b0 + a1*b1) + c
std::uint32_t v_dot2c_f32_bf16(std::uint32_t a, std::uint32_t b, std::uint32_t d);  // (d + a0*b0) + a1*b1

// v_fma_mix_f32 and its f16 forms are fma on operands that the caller has widened with f16_to_f32().
inline std::uint32_t v_fma_f32(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    return to_bits(std::fma(to_float(a), to_float(b), to_float(c)));
}

}  // namespace kiln::sim::numeric
