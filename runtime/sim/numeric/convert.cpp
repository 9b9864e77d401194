#include "runtime/sim/numeric/convert.hpp"

#include <bit>
#include <cmath>

#include "runtime/sim/numeric/arithmetic.hpp"

namespace kiln::sim::numeric {
namespace {

template <Format kFormat, unsigned kCodes>
constexpr std::array<float, kCodes> value_table() {
    std::array<float, kCodes> values{};
    for (unsigned code = 0; code < kCodes; ++code)
        values[code] = to_float(decode(kFormat, code));
    return values;
}
constexpr auto kE4m3 = value_table<Format::e4m3, 256>();
constexpr auto kE5m2 = value_table<Format::e5m2, 256>();
constexpr auto kE2m1 = value_table<Format::e2m1, 16>();

float value_of_8bit(Format format, std::uint32_t code) {
    return (format == Format::e4m3 ? kE4m3 : kE5m2)[code & 0xff];
}

std::uint32_t scale_field(std::uint32_t scale) {
    return scale >> 23 & 0xff;
}
int scale_exponent(std::uint32_t scale) {
    return static_cast<int>(scale_field(scale)) - 127;
}

// A float that holds the scale: multiplying a code's value by it is exact, or overflows to infinity.
float scale_factor(std::uint32_t scale) {
    const std::uint32_t field = scale_field(scale);
    if (field == 0)
        return to_float(0x00400000);  // 2^-127, a denormal
    return to_float(field == 255 ? kQuietNan : field << 23);
}

Pair unpack_scaled(Format from, std::uint32_t source, std::uint32_t scale, unsigned part) {
    const float factor = scale_factor(scale);
    if (from == Format::e2m1) {
        const std::uint32_t byte = source >> (8 * part);
        return {to_bits(kE2m1[byte & 0xf] * factor), to_bits(kE2m1[byte >> 4 & 0xf] * factor)};
    }
    const std::uint32_t half = source >> (16 * part);
    return {to_bits(value_of_8bit(from, half) * factor), to_bits(value_of_8bit(from, half >> 8) * factor)};
}

std::uint32_t narrow(Format to, std::uint32_t x) {
    return to == Format::bf16 ? f32_to_bf16(x) : f32_to_f16(x);
}

Pair widen(Format from, std::uint32_t source) {
    if (from == Format::bf16)
        return {bf16_to_f32(source), source & 0xffff0000};
    return {f16_to_f32(source), f16_to_f32(source >> 16)};
}

std::uint32_t insert(std::uint32_t old, std::uint32_t value, unsigned position, unsigned bits) {
    const std::uint32_t mask = (1u << bits) - 1;
    return (old & ~(mask << position)) | (value & mask) << position;
}

std::uint32_t encode_8bit(Format format, std::uint32_t x, int exponent) {
    return format == Format::e4m3 ? encode(Format::e4m3, x, exponent) : encode(Format::e5m2, x, exponent);
}

}  // namespace

std::uint32_t f32_to_f16_toward_zero(std::uint32_t x) {
    const std::uint32_t nearest = f32_to_f16(x);
    const bool rounded_up = !is_nan(x) && (f16_to_f32(nearest) & ~kSignBit) > (x & ~kSignBit);
    return rounded_up ? nearest - 1
                      : nearest;  // the code below, which below infinity is the largest finite number
}

std::uint32_t v_cvt_pkrtz_f16_f32(std::uint32_t low, std::uint32_t high) {
    return f32_to_f16_toward_zero(low) | f32_to_f16_toward_zero(high) << 16;
}

std::uint32_t v_cvt_pk_8bit_f32(Format format, std::uint32_t low, std::uint32_t high, std::uint32_t old,
                                unsigned half) {
    const std::uint32_t pair = encode_8bit(format, low, 0) | encode_8bit(format, high, 0) << 8;
    return insert(old, pair, 16 * half, 16);
}

std::uint32_t v_cvt_f32_8bit(Format format, std::uint32_t source, unsigned byte) {
    return to_bits(value_of_8bit(format, source >> (8 * byte)));
}

Pair v_cvt_pk_f32_8bit(Format format, std::uint32_t source, unsigned half) {
    return {v_cvt_f32_8bit(format, source, 2 * half), v_cvt_f32_8bit(format, source, 2 * half + 1)};
}

Pair v_cvt_scalef32_pk_f32(Format from, std::uint32_t source, std::uint32_t scale, unsigned part) {
    return unpack_scaled(from, source, scale, part);
}

std::uint32_t v_cvt_scalef32_pk_16bit(Format from, Format to, std::uint32_t source, std::uint32_t scale,
                                      unsigned part) {
    const Pair values = unpack_scaled(from, source, scale, part);
    return narrow(to, values[0]) | narrow(to, values[1]) << 16;
}

std::uint32_t v_cvt_scalef32_single(Format from, Format to, std::uint32_t source, std::uint32_t scale,
                                    unsigned byte) {
    const std::uint32_t value = to_bits(value_of_8bit(from, source >> (8 * byte)) * scale_factor(scale));
    return to == Format::f32 ? value : narrow(to, value);
}

std::uint32_t v_cvt_scalef32_pk_8bit_f32(Format to, std::uint32_t low, std::uint32_t high,
                                         std::uint32_t scale, std::uint32_t old, unsigned half) {
    if (scale_field(scale) == 255)
        low = high = kQuietNan;
    const int exponent = scale_exponent(scale);
    const std::uint32_t pair = encode_8bit(to, low, exponent) | encode_8bit(to, high, exponent) << 8;
    return insert(old, pair, 16 * half, 16);
}

std::uint32_t v_cvt_scalef32_pk_8bit_16bit(Format to, Format from, std::uint32_t source, std::uint32_t scale,
                                           std::uint32_t old, unsigned half) {
    const Pair values = widen(from, source);
    return v_cvt_scalef32_pk_8bit_f32(to, values[0], values[1], scale, old, half);
}

std::optional<std::uint32_t> v_cvt_scalef32_pk_fp4_f32(std::uint32_t low, std::uint32_t high,
                                                       std::uint32_t scale, std::uint32_t old,
                                                       unsigned byte) {
    if (scale_field(scale) == 255 || is_nan(low) || is_nan(high))
        return std::nullopt;
    const int exponent = scale_exponent(scale);
    const std::uint32_t pair = encode(Format::e2m1, low, exponent) | encode(Format::e2m1, high, exponent)
                                                                         << 4;
    return insert(old, pair, 8 * byte, 8);
}

std::optional<std::uint32_t> v_cvt_scalef32_pk_fp4_16bit(Format from, std::uint32_t source,
                                                         std::uint32_t scale, std::uint32_t old,
                                                         unsigned byte) {
    const Pair values = widen(from, source);
    return v_cvt_scalef32_pk_fp4_f32(values[0], values[1], scale, old, byte);
}

namespace {

std::uint32_t saturate_i32(double x) {
    if (std::isnan(x))
        return 0;
    if (x >= 2147483647.0)
        return 0x7fffffff;
    if (x <= -2147483648.0)
        return 0x80000000;
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(x));
}

}  // namespace

std::uint32_t v_cvt_rpi_i32_f32(std::uint32_t x) {
    return saturate_i32(std::floor(double{to_float(x)} + 0.5));
}
std::uint32_t v_cvt_flr_i32_f32(std::uint32_t x) {
    return saturate_i32(std::floor(to_float(x)));
}

}  // namespace kiln::sim::numeric
