// div_scale, div_fmas and div_fixup, for both precisions: after the pseudocode of the ISA manual, but for
// three places where following it to the letter would make clang's division sequence wrong, which on the
// hardware it is not.
//
// clang-format off
// 1. div_fmas multiplies by 2^64 or 2^-64, by the size of the quotient, not by 2^32: it undoes what
//    div_scale did.
// 2. A denominator whose reciprocal and quotient are both denormal is scaled down: scaled up it would
//    overflow.
// 3. div_fixup turns a NaN quotient of finite operands into infinity: the chain overflowed on the way.
// clang-format on

#include "runtime/sim/numeric/arithmetic.hpp"

namespace kiln::sim::numeric {
namespace {

struct Single {
    using Real = float;
    using Bits = std::uint32_t;
    static constexpr int kMantissa = 23;
    static constexpr int kMaxField = 255;
    static constexpr int kScale = 64;  // exponent by which div_scale scales
    static constexpr int kFar = 96;    // numerator so much larger that the quotient nears overflow
    static constexpr int kTiny = 23;   // exponent field below which a numerator loses bits in the fma chain
    static constexpr int kUnderflow = -150;  // exponent distance below which the quotient is 0
};

struct Double {
    using Real = double;
    using Bits = std::uint64_t;
    static constexpr int kMantissa = 52;
    static constexpr int kMaxField = 2047;
    static constexpr int kScale = 128;
    static constexpr int kFar = 768;
    static constexpr int kTiny = 53;
    static constexpr int kUnderflow = -1075;
};

template <class P>
constexpr typename P::Bits kSign = typename P::Bits{1} << (8 * sizeof(typename P::Bits) - 1);
template <class P>
constexpr typename P::Bits kInf = static_cast<typename P::Bits>(P::kMaxField) << P::kMantissa;
template <class P>
constexpr typename P::Bits kQuietBit = typename P::Bits{1} << (P::kMantissa - 1);

template <class P>
typename P::Real real(typename P::Bits bits) {
    return std::bit_cast<typename P::Real>(bits);
}
template <class P>
int field(typename P::Bits bits) {
    return static_cast<int>(bits >> P::kMantissa) & P::kMaxField;
}
template <class P>
bool nan(typename P::Bits bits) {
    return (bits & ~kSign<P>) > kInf<P>;
}
template <class P>
bool denormal(typename P::Real x) {
    const auto bits = std::bit_cast<typename P::Bits>(x);
    return field<P>(bits) == 0 && (bits & ~kSign<P>) != 0;
}
template <class P>
typename P::Bits scaled(typename P::Bits bits, int exponent) {
    return std::bit_cast<typename P::Bits>(std::ldexp(real<P>(bits), exponent));
}

template <class Result, class P>
Result div_scale(typename P::Bits value, typename P::Bits denominator, typename P::Bits numerator) {
    using Real = typename P::Real;
    const Real d = real<P>(denominator);
    const Real n = real<P>(numerator);
    if (n == 0 || d == 0)
        return {kInf<P> | kQuietBit<P>, false};
    const auto up = scaled<P>(value, P::kScale);
    if (field<P>(numerator) - field<P>(denominator) >= P::kFar)
        return {value == denominator ? up : value, true};
    if (denormal<P>(d))
        return {up, false};
    const bool tiny_reciprocal = denormal<P>(Real{1} / d);
    const bool tiny_quotient = denormal<P>(n / d);
    if (tiny_reciprocal) {
        const auto down = scaled<P>(value, -P::kScale);
        return tiny_quotient ? Result{value == denominator ? down : value, true} : Result{down, false};
    }
    if (tiny_quotient)
        return {value == numerator ? up : value, true};
    if (field<P>(numerator) <= P::kTiny)
        return {up, false};
    return {value, false};
}

template <class P>
typename P::Bits div_fixup(typename P::Bits quotient, typename P::Bits denominator,
                           typename P::Bits numerator) {
    const auto sign = (denominator ^ numerator) & kSign<P>;
    const auto d = denominator & ~kSign<P>;
    const auto n = numerator & ~kSign<P>;
    if (nan<P>(numerator))
        return numerator | kQuietBit<P>;
    if (nan<P>(denominator))
        return denominator | kQuietBit<P>;
    if ((n == 0 && d == 0) || (n == kInf<P> && d == kInf<P>))
        return kSign<P> | kInf<P> | kQuietBit<P>;
    if (d == 0 || n == kInf<P>)
        return sign | kInf<P>;
    if (d == kInf<P> || n == 0)
        return sign;
    if (field<P>(numerator) - field<P>(denominator) < P::kUnderflow)
        return sign;
    return sign | (nan<P>(quotient) ? kInf<P> : quotient & ~kSign<P>);
}

}  // namespace

DivScale32 v_div_scale_f32(std::uint32_t value, std::uint32_t denominator, std::uint32_t numerator) {
    return div_scale<DivScale32, Single>(value, denominator, numerator);
}
DivScale64 v_div_scale_f64(std::uint64_t value, std::uint64_t denominator, std::uint64_t numerator) {
    return div_scale<DivScale64, Double>(value, denominator, numerator);
}
std::uint32_t v_div_fixup_f32(std::uint32_t quotient, std::uint32_t denominator, std::uint32_t numerator) {
    return div_fixup<Single>(quotient, denominator, numerator);
}
std::uint64_t v_div_fixup_f64(std::uint64_t quotient, std::uint64_t denominator, std::uint64_t numerator) {
    return div_fixup<Double>(quotient, denominator, numerator);
}

std::uint32_t v_div_fmas_f32(std::uint32_t a, std::uint32_t b, std::uint32_t c, bool vcc) {
    if (!vcc)
        return v_fma_f32(a, b, c);
    // a*b is exact in double and a*b + c rounds to odd there: whatever the scaled result then rounds to in
    // float, denormal or not, it is the one rounding of the exact value.
    const double product = double{to_float(a)} * double{to_float(b)};
    const double addend = to_float(c);
    double sum = product + addend;
    if (std::isfinite(sum) && sum != 0) {
        const double back = sum - product;
        const double error = (product - (sum - back)) + (addend - back);
        if (error != 0 && (to_bits(sum) & 1) == 0) {
            const bool outward = (error > 0) == (sum > 0);
            sum = to_double(outward ? to_bits(sum) + 1 : to_bits(sum) - 1);
        }
    }
    const int exponent = field<Single>(c) > 127 ? Single::kScale : -Single::kScale;
    return to_bits(static_cast<float>(std::ldexp(sum, exponent)));
}

std::uint64_t v_div_fmas_f64(std::uint64_t a, std::uint64_t b, std::uint64_t c, bool vcc) {
    const double sum = std::fma(to_double(a), to_double(b), to_double(c));
    if (!vcc)
        return to_bits(sum);
    return to_bits(std::ldexp(sum, field<Double>(c) > 1023 ? Double::kScale : -Double::kScale));
}

}  // namespace kiln::sim::numeric
