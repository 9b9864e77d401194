// The conversion instructions, one lane at a time. Each function is named after its instruction; arguments
// and results are register bits, with the source's modifiers already applied and the result's clamp still to
// come.
//
// Which part of a register an instruction uses is an argument here. As listings print it, op_sel[i] being the
// i-th entry of their list (an absent op_sel is zeros, and so is an absent last entry):
//
//   v_cvt_pk_{fp8,bf8}_f32                          op_sel[2]: the destination's half; the other half is kept
//   v_cvt_f32_{fp8,bf8}                             SDWA src0_sel:BYTE_n, applied by the caller: byte is 0
//   then v_cvt_pk_f32_{fp8,bf8}                          SDWA src0_sel:WORD_1, applied by the caller: half is
//   0 then v_cvt_scalef32_pk_{f32,f16,bf16}_fp4            op_sel[0] + 2*op_sel[1]: the source's byte
//   v_cvt_scalef32_pk_{f32,f16,bf16}_{fp8,bf8}      op_sel[0]: the source's half
//   v_cvt_scalef32_{f32,f16}_{fp8,bf8}              op_sel[0] + 2*op_sel[1]: the source's byte; for f16 also
//                                                   op_sel[2]: the destination's half; the other half is kept
//   v_cvt_scalef32_pk_fp4_{f32,f16,bf16}            op_sel[2] + 2*op_sel[3]: the destination's byte; the
//   others are kept v_cvt_scalef32_pk_{fp8,bf8}_f32                 op_sel[3]: the destination's half; the
//   other half is kept v_cvt_scalef32_pk_{fp8,bf8}_{f16,bf16}          op_sel[2]: the destination's half; the
//   other half is kept
//
// The scale of every cvt_scalef32 instruction is a float of which only the exponent field counts:
// 2^(field-127), with 0 meaning 2^-127 and 255 NaN. Conversions up multiply by it, conversions down divide.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "runtime/sim/numeric/minifloat.hpp"

namespace kiln::sim::numeric {

using Pair = std::array<std::uint32_t, 2>;

constexpr std::uint32_t f16_to_f32(std::uint32_t half) {
    return decode(Format::f16, half & 0xffff);
}
constexpr std::uint32_t bf16_to_f32(std::uint32_t half) {
    return half << 16;
}
// Rounds to nearest even; the result is in bits 15:0.
constexpr std::uint32_t f32_to_f16(std::uint32_t x) {
    return encode(Format::f16, x);
}
constexpr std::uint32_t f32_to_bf16(std::uint32_t x);
// Rounds toward zero; an overflow from finite gives the largest finite number.
std::uint32_t f32_to_f16_toward_zero(std::uint32_t x);

std::uint32_t v_cvt_pkrtz_f16_f32(std::uint32_t low, std::uint32_t high);

// Unscaled 8-bit conversions. `format` is e4m3 ("fp8") or e5m2 ("bf8"). Down: FP16_OVFL = 0, so overflow,
// infinity and NaN become NaN in e4m3, and infinity and NaN in e5m2.
std::uint32_t v_cvt_pk_8bit_f32(Format format, std::uint32_t low, std::uint32_t high, std::uint32_t old,
                                unsigned half);
std::uint32_t v_cvt_f32_8bit(Format format, std::uint32_t source, unsigned byte);
Pair v_cvt_pk_f32_8bit(Format format, std::uint32_t source, unsigned half);

// Scaled, up. `from` is e2m1, e4m3 or e5m2; `part` is a byte of the source for e2m1, a half for the others.
// NaN and scale 255 give NaN.
Pair v_cvt_scalef32_pk_f32(Format from, std::uint32_t source, std::uint32_t scale, unsigned part);
// `to` is f16 or bf16; both results are in one register.
std::uint32_t v_cvt_scalef32_pk_16bit(Format from, Format to, std::uint32_t source, std::uint32_t scale,
                                      unsigned part);
// One 8-bit number to f32 or, in bits 15:0, to f16.
std::uint32_t v_cvt_scalef32_single(Format from, Format to, std::uint32_t source, std::uint32_t scale,
                                    unsigned byte);

// Scaled, down, to e4m3 or e5m2: one rounding. `half` of the destination is written. Overflow as in the
// unscaled ones.
std::uint32_t v_cvt_scalef32_pk_8bit_f32(Format to, std::uint32_t low, std::uint32_t high,
                                         std::uint32_t scale, std::uint32_t old, unsigned half);
// `from` is f16 or bf16, both numbers in one register.
std::uint32_t v_cvt_scalef32_pk_8bit_16bit(Format to, Format from, std::uint32_t source, std::uint32_t scale,
                                           std::uint32_t old, unsigned half);

// Scaled, down, to e2m1: saturates with the sign kept. Nothing when a number is NaN or the scale is 255: what
// the hardware writes then is not specified, so the caller reports it.
std::optional<std::uint32_t> v_cvt_scalef32_pk_fp4_f32(std::uint32_t low, std::uint32_t high,
                                                       std::uint32_t scale, std::uint32_t old, unsigned byte);
std::optional<std::uint32_t> v_cvt_scalef32_pk_fp4_16bit(Format from, std::uint32_t source,
                                                         std::uint32_t scale, std::uint32_t old,
                                                         unsigned byte);

// Float to integer: saturates, and NaN gives 0.
std::uint32_t v_cvt_rpi_i32_f32(std::uint32_t x);  // floor(x + 0.5)
std::uint32_t v_cvt_flr_i32_f32(std::uint32_t x);  // floor(x)

// ---- implementations ----

constexpr std::uint32_t f32_to_bf16(std::uint32_t x) {
    if (is_nan(x))
        return x >> 16 | 0x40;
    return (x + 0x7fff + (x >> 16 & 1)) >> 16;
}

}  // namespace kiln::sim::numeric
