// The small floating-point formats as numbers: what each code means, and which code a number rounds to.
//
// Everything works on bits (a code, or the 32 bits of a float), so that NaN payloads, denormals and the
// host's floating point modes cannot get in between. Pure functions; thread safe.
#pragma once

#include <bit>
#include <cstdint>

namespace kiln::sim::numeric {

// The values 0 to 4 are those of the matrix instructions' cbsz and blgp fields.
enum class Format : std::uint8_t {
    e4m3 = 0,  // OCP e4m3fn: no infinity, the largest is 448, 0x7f and 0xff are NaN
    e5m2 = 1,  // OCP e5m2 ("bf8"): infinity and NaN as in IEEE
    e2m3 = 2,  // fp6: finite codes only, the largest is 7.5
    e3m2 = 3,  // bf6: finite codes only, the largest is 28
    e2m1 = 4,  // fp4: finite codes only, the largest is 6
    bf16,
    f16,
    f32,
};

// How a format spells its numbers. exponent field 0 means denormal in all of them.
struct Layout {
    int bits;  // of one code
    int mantissa_bits;
    int bias;
    std::uint32_t max_code;  // magnitude of the largest finite number
    std::uint32_t nan_code;  // magnitude of the quiet NaN that a conversion makes; 0 where there is none
    bool has_infinity;       // at max_code + 1
};

constexpr Layout layout_of(Format format) {
    switch (format) {
        case Format::e4m3:
            return {8, 3, 7, 0x7e, 0x7f, false};
        case Format::e5m2:
            return {8, 2, 15, 0x7b, 0x7f, true};
        case Format::e2m3:
            return {6, 3, 1, 0x1f, 0, false};
        case Format::e3m2:
            return {6, 2, 3, 0x1f, 0, false};
        case Format::e2m1:
            return {4, 1, 1, 0x7, 0, false};
        case Format::bf16:
            return {16, 7, 127, 0x7f7f, 0x7fc0, true};
        case Format::f16:
            return {16, 10, 15, 0x7bff, 0x7e00, true};
        case Format::f32:
            return {32, 23, 127, 0x7f7fffff, 0x7fc00000, true};
    }
    return {};
}

inline constexpr std::uint32_t kQuietNan = 0x7fc00000;
inline constexpr std::uint32_t kInfinity = 0x7f800000;
inline constexpr std::uint32_t kSignBit = 0x80000000;

constexpr bool is_nan(std::uint32_t float_bits) {
    return (float_bits & ~kSignBit) > kInfinity;
}

// The float bits of a code times 2^exponent. Exact wherever float can hold the result, which is everywhere
// for exponents of -127 to 127 and formats of at most 8 bits; one rounding to nearest even below, infinity
// above. Bits above the code's are ignored. NaN comes back quiet with its sign and payload.
constexpr std::uint32_t decode(Format format, std::uint32_t code, int exponent = 0);

// The code that `float_bits` / 2^exponent rounds to: nearest even, one rounding. Too large a number becomes
// infinity, or NaN in e4m3 (FP16_OVFL = 0, the default), and saturates with its sign in fp4 and fp6. NaN to
// those two is for the caller to refuse: what the hardware answers is not specified.
constexpr std::uint32_t encode(Format format, std::uint32_t float_bits, int exponent = 0);

// ---- implementations ----

namespace detail {

// value = (-1)^negative * significand * 2^exponent; the significand is below 2^24.
struct Parts {
    bool negative;
    std::uint32_t significand;
    int exponent;
};

constexpr Parts split(const Layout& layout, std::uint32_t code) {
    const std::uint32_t mantissa = code & ((1u << layout.mantissa_bits) - 1);
    const int exponent_bits = layout.bits - 1 - layout.mantissa_bits;
    const int field = static_cast<int>(code >> layout.mantissa_bits) & ((1 << exponent_bits) - 1);
    const bool negative = (code >> (layout.bits - 1)) & 1;
    if (field == 0)
        return {negative, mantissa, 1 - layout.bias - layout.mantissa_bits};
    return {negative, mantissa | (1u << layout.mantissa_bits), field - layout.bias - layout.mantissa_bits};
}

// The magnitude's code, rounded to nearest even; may lie beyond max_code.
constexpr std::uint32_t round_magnitude(const Layout& layout, std::uint32_t significand, int exponent) {
    if (significand == 0)
        return 0;
    const int top = 31 - std::countl_zero(significand) + exponent;  // 2^top <= value < 2^(top+1)
    const int lowest = 1 - layout.bias;                             // exponent of the smallest normal number
    const int step =
        (top < lowest ? lowest : top) - layout.mantissa_bits;  // exponent of one unit in the last place
    const int drop = step - exponent;
    std::uint32_t units;
    if (drop <= 0) {
        units = significand << -drop;
    } else if (drop > 25) {
        units = 0;
    } else {
        const std::uint32_t half = 1u << (drop - 1);
        units = (significand + half - 1 + ((significand >> drop) & 1)) >> drop;
    }
    // Counting units from the bottom of the binade: a carry moves into the next exponent by itself.
    if (top < lowest)
        return units;
    const int field = top + layout.bias;
    if (field > 2 * 255)
        return ~0u >> 1;
    return (static_cast<std::uint32_t>(field) << layout.mantissa_bits) + units - (1u << layout.mantissa_bits);
}

}  // namespace detail

constexpr std::uint32_t decode(Format format, std::uint32_t code, int exponent) {
    const Layout layout = layout_of(format);
    const std::uint32_t sign_mask = 1u << (layout.bits - 1);
    const std::uint32_t magnitude = code & (sign_mask - 1);
    const std::uint32_t sign = (code & sign_mask) != 0 ? kSignBit : 0;
    if (layout.nan_code != 0 && magnitude > layout.max_code) {
        if (layout.has_infinity && magnitude == layout.max_code + 1)
            return sign | kInfinity;
        return sign | kQuietNan | (magnitude << (23 - layout.mantissa_bits) & 0x3fffff);
    }
    const detail::Parts parts = detail::split(layout, magnitude);
    const std::uint32_t bits =
        detail::round_magnitude(layout_of(Format::f32), parts.significand, parts.exponent + exponent);
    return sign | (bits > kInfinity ? kInfinity : bits);
}

constexpr std::uint32_t encode(Format format, std::uint32_t float_bits, int exponent) {
    const Layout layout = layout_of(format);
    const std::uint32_t sign = (float_bits >> 31) << (layout.bits - 1);
    const std::uint32_t magnitude = float_bits & ~kSignBit;
    if (magnitude > kInfinity && layout.nan_code != 0) {
        // bf16 and f16 keep the payload's upper bits; what the 8-bit formats keep is not specified: all ones
        // here.
        const std::uint32_t payload = layout.bits == 16 ? magnitude >> (23 - layout.mantissa_bits) : 0;
        return sign | layout.nan_code | (payload & ((1u << layout.mantissa_bits) - 1));
    }
    // Normal to normal, by far the usual case: rebias, then round the magnitude as an integer.
    const int shift = 23 - layout.mantissa_bits;
    const int field = static_cast<int>(magnitude >> 23);
    const int new_field = field - exponent - 127 + layout.bias;
    if (field != 0 && field != 255 && new_field >= 1 &&
        new_field <= static_cast<int>(layout.max_code >> layout.mantissa_bits)) {
        std::uint32_t rebiased = (magnitude & 0x7fffff) | static_cast<std::uint32_t>(new_field) << 23;
        if (shift > 0)
            rebiased += (1u << (shift - 1)) - 1 + (rebiased >> shift & 1);
        if (rebiased >> shift <= layout.max_code)
            return sign | rebiased >> shift;
    }
    std::uint32_t code = ~0u >> 1;
    if (magnitude < kInfinity) {
        const detail::Parts parts = detail::split(layout_of(Format::f32), magnitude);
        code = detail::round_magnitude(layout, parts.significand, parts.exponent - exponent);
    }
    if (code > layout.max_code) {
        if (layout.nan_code == 0)
            code = layout.max_code;
        else
            code = layout.has_infinity ? layout.max_code + 1 : layout.nan_code;
    }
    return sign | code;
}

}  // namespace kiln::sim::numeric
