// Vector instructions on float16 and the 16-bit ones that choose halves. Arithmetic goes through float32 or
// float64 and rounds once.
#include "runtime/sim/lanes.hpp"
#include "runtime/sim/numeric/arithmetic.hpp"
#include "runtime/sim/numeric/convert.hpp"
#include "runtime/sim/table.hpp"

namespace kiln::sim::KILN_SIM_LEVEL {
namespace {

namespace n = numeric;

float wide(u32 half) {
    return n::to_float(n::f16_to_f32(half));
}
u32 narrow_bits(u32 bits) {
    return n::f32_to_f16(bits) & 0xffff;
}
u32 narrow(float x) {
    return narrow_bits(n::to_bits(x));
}

// A double rounded to odd in float32: what rounds from there to float16 has rounded once.
u32 round_to_odd(double x) {
    const auto nearest = static_cast<float>(x);
    u32 bits = n::to_bits(nearest);
    if (std::isfinite(nearest) && static_cast<double>(nearest) != x && (bits & 1) == 0) {
        const bool up = static_cast<double>(nearest) < x;
        bits += (up != (bits >> 31 != 0)) ? 1u : ~u32{0};
    }
    return bits;
}

// x * y is exact in float64; the sum is made odd when it is not.
u32 fma_f16(u32 x, u32 y, u32 z) {
    const double product = static_cast<double>(wide(x)) * wide(y), addend = wide(z);
    const double sum = product + addend;
    if (!std::isfinite(sum)) {
        return narrow(static_cast<float>(sum));
    }
    const double back = sum - product;
    const double error = (product - (sum - back)) + (addend - back);
    u64 bits = n::to_bits(sum);
    if (error != 0 && (bits & 1) == 0) {
        bits += ((error > 0) != (bits >> 63 != 0)) ? u64{1} : ~u64{0};
    }
    return narrow_bits(round_to_odd(n::to_double(bits)));
}

template <auto Function>
u32 through_f32(u32 x) {
    return narrow_bits(Function(n::f16_to_f32(x)));
}
u32 min_of(u32 x, u32 y) {
    return narrow_bits(n::v_min_f32(n::f16_to_f32(x), n::f16_to_f32(y)));
}
u32 max_of(u32 x, u32 y) {
    return narrow_bits(n::v_max_f32(n::f16_to_f32(x), n::f16_to_f32(y)));
}

// One half of each source, its modifiers applied, in bits 15:0. `ok` loses lanes in which that half is not
// defined.
const u32* fetch_half(const Wave& w, const Operand& o, bool high, u32* room, u64& ok) {
    u64 whole = kAllLanes;
    Operand plain = o;
    plain.modifiers = 0;
    const u32* lanes = fetch<1>(w, plain, room, whole);
    if (whole != kAllLanes && o.kind == Operand::vgpr) {
        whole = w.byte_defined(o.index, high ? 2 : 0) & w.byte_defined(o.index, high ? 3 : 1);
    } else if (whole != kAllLanes && o.kind == Operand::sgpr) {
        whole = (~w.sgprs_defined[o.index] >> (high ? 16 : 0) & 0xffff) == 0 ? kAllLanes : 0;
    }
    ok &= whole;
    const u32 keep = o.modifiers & Operand::kAbs ? 0x7fff : 0xffff,
              flip = o.modifiers & Operand::kNeg ? 0x8000 : 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        room[lane] = ((lanes[lane] >> (high ? 16 : 0)) & keep) ^ flip;
    }
    return room;
}

// What becomes of the half of the destination that is not the result.
enum class Other { zero, kept };

template <auto Function, int Sources, Other Rest>
void half_op(Wave& w, const Instruction& i) {
    alignas(64) u32 room[3][kLanes];
    const u32* s[3] = {};
    u64 ok = kAllLanes;
    for (int k = 0; k < Sources; ++k) {
        s[k] = fetch_half(w, i.src[k], i.op_sel >> k & 1, room[k], ok);
    }
    const bool high = i.op_sel >> Sources & 1;
    const u64 exec = w.exec();
    mark_bytes(w, i, i.dst.index, Rest == Other::zero ? 0xf : high ? 0xc : 0x3, exec, exec & ~ok);
    u32* d = w.rows[i.dst.index];
    for (u64 left = exec & ok; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        u32 value = 0;
        if constexpr (Sources == 1) {
            value = Function(s[0][lane]);
        } else if constexpr (Sources == 2) {
            value = Function(s[0][lane], s[1][lane]);
        } else {
            value = Function(s[0][lane], s[1][lane], s[2][lane]);
        }
        value &= 0xffff;
        d[lane] = Rest == Other::zero ? value
                  : high              ? (d[lane] & 0xffff) | value << 16
                                      : (d[lane] & 0xffff0000u) | value;
    }
}

// Both halves. neg_lo and neg_hi are the signs of what op_sel and op_sel_hi pick.
template <auto Function, int Sources>
void packed_op(Wave& w, const Instruction& i) {
    alignas(64) u32 room[2][3][kLanes];
    u64 ok[2] = {kAllLanes, kAllLanes};
    for (int half = 0; half < 2; ++half) {
        const unsigned select = half ? i.op_sel_hi : i.op_sel, negate = half ? i.neg_hi : i.neg_lo;
        for (int k = 0; k < Sources; ++k) {
            Operand o = i.src[k];
            o.modifiers = negate >> k & 1 ? Operand::kNeg : 0;
            fetch_half(w, o, select >> k & 1, room[half][k], ok[half]);
        }
    }
    const u64 exec = w.exec();
    const Origin origin = exec & ~(ok[0] & ok[1]) ? origin_of(w, i, exec & ~(ok[0] & ok[1])) : Origin{};
    mark_bytes(w, i, i.dst.index, 0x3, exec, exec & ~ok[0]);
    mark_bytes(w, i, i.dst.index, 0xc, exec, exec & ~ok[1]);
    if (exec & ~(ok[0] & ok[1])) {
        w.origins[i.dst.index] = origin;
    }
    u32* d = w.rows[i.dst.index];
    for (u64 left = exec; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        u32 value[2];
        for (int half = 0; half < 2; ++half) {
            if constexpr (Sources == 2) {
                value[half] = Function(room[half][0][lane], room[half][1][lane]);
            } else {
                value[half] = Function(room[half][0][lane], room[half][1][lane], room[half][2][lane]);
            }
        }
        d[lane] = (value[0] & 0xffff) | value[1] << 16;
    }
}

// fma on sources that are float32, or float16 where op_sel_hi says so (op_sel then picks the half).
enum class Mix { f32, low, high };
template <Mix To>
void fma_mix(Wave& w, const Instruction& i) {
    alignas(64) u32 room[3][kLanes];
    u64 ok = kAllLanes;
    const u32* s[3];
    for (int k = 0; k < 3; ++k) {
        // The assembler writes the modifiers of these as those of plain sources.
        if (i.op_sel_hi >> k & 1) {
            s[k] = fetch_half(w, i.src[k], i.op_sel >> k & 1, room[k], ok);
            for (unsigned lane = 0; lane < kLanes; ++lane) {
                room[k][lane] = n::f16_to_f32(room[k][lane]);
            }
        } else {
            s[k] = fetch<1>(w, i.src[k], room[k], ok);
        }
    }
    const u64 exec = w.exec();
    mark_bytes(w, i, i.dst.index, To == Mix::f32 ? 0xf : To == Mix::high ? 0xc : 0x3, exec, exec & ~ok);
    u32* d = w.rows[i.dst.index];
    for (u64 left = exec & ok; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        const u32 x = s[0][lane], y = s[1][lane], z = s[2][lane];
        const u32 value = settle_nan(b(__builtin_fmaf(f(x), f(y), f(z))), x, y, z);
        if constexpr (To == Mix::f32) {
            d[lane] = value;
        } else {
            const u32 half = narrow_bits(value);
            d[lane] = To == Mix::high ? (d[lane] & 0xffff) | half << 16 : (d[lane] & 0xffff0000u) | half;
        }
    }
}

template <bool (*Condition)(float, float), bool Exec>
void cmp(Wave& w, const Instruction& i) {
    alignas(64) u32 room[2][kLanes];
    u64 ok = kAllLanes, mask = 0;
    const u32* x = fetch_half(w, i.src[0], false, room[0], ok);
    const u32* y = fetch_half(w, i.src[1], false, room[1], ok);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        mask |= static_cast<u64>(Condition(wide(x[lane]), wide(y[lane]))) << lane;
    }
    const u64 exec = w.exec();
    write_mask(w, i, i.dst, mask, exec, ok);
    if constexpr (Exec) {
        if (exec & ~ok) {
            fault_undefined(w, i, "EXEC", std::countr_zero(exec & ~ok), origin_of(w, i, exec & ~ok));
        }
        w.set_exec(mask & exec);
    }
}

void cvt_f32_f16(Wave& w, const Instruction& i) {
    alignas(64) u32 room[kLanes];
    u64 ok = kAllLanes;
    const u32* x = fetch_half(w, i.src[0], false, room, ok);
    const u64 exec = w.exec();
    mark_bytes(w, i, i.dst.index, 0xf, exec, exec & ~ok);
    for (u64 left = exec & ok; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        w.rows[i.dst.index][lane] = n::f16_to_f32(x[lane]);
    }
}

void pack_b32_f16(Wave& w, const Instruction& i) {
    alignas(64) u32 room[2][kLanes];
    u64 ok[2] = {kAllLanes, kAllLanes};
    const u32* low = fetch_half(w, i.src[0], i.op_sel & 1, room[0], ok[0]);
    const u32* high = fetch_half(w, i.src[1], i.op_sel >> 1 & 1, room[1], ok[1]);
    const u64 exec = w.exec();
    const Origin origin = exec & ~(ok[0] & ok[1]) ? origin_of(w, i, exec & ~(ok[0] & ok[1])) : Origin{};
    mark_bytes(w, i, i.dst.index, 0x3, exec, exec & ~ok[0]);
    mark_bytes(w, i, i.dst.index, 0xc, exec, exec & ~ok[1]);
    if (origin.reader != nullptr) {
        w.origins[i.dst.index] = origin;
    }
    for (u64 left = exec; left != 0; left &= left - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(left));
        w.rows[i.dst.index][lane] = low[lane] | high[lane] << 16;
    }
}

u32 add(u32 x, u32 y) {
    return narrow(wide(x) + wide(y));
}
u32 sub(u32 x, u32 y) {
    return narrow(wide(x) - wide(y));
}
u32 subrev(u32 x, u32 y) {
    return narrow(wide(y) - wide(x));
}
u32 mul(u32 x, u32 y) {
    return narrow(wide(x) * wide(y));
}
u32 min3(u32 x, u32 y, u32 z) {
    return min_of(min_of(x, y), z);
}
u32 max3(u32 x, u32 y, u32 z) {
    return max_of(max_of(x, y), z);
}
u32 ldexp16(u32 x, u32 y) {
    return narrow_bits(n::v_ldexp_f32(n::f16_to_f32(x), static_cast<u32>(static_cast<std::int16_t>(y))));
}
u32 div_fixup(u32 q, u32 d, u32 m) {
    return narrow_bits(n::v_div_fixup_f32(n::f16_to_f32(q), n::f16_to_f32(d), n::f16_to_f32(m)));
}
u32 from_u16(u32 x) {
    return narrow(static_cast<float>(x & 0xffff));
}
u32 from_i16(u32 x) {
    return narrow(static_cast<float>(static_cast<std::int16_t>(x)));
}
u32 to_u16(u32 x) {
    const float v = wide(x);
    return !(v > 0) ? 0 : v >= 65535.0f ? 0xffff : static_cast<u32>(v);
}
u32 to_i16(u32 x) {
    const float v = wide(x);
    return v != v           ? 0
           : v >= 32767.0f  ? 0x7fff
           : v <= -32768.0f ? 0x8000
                            : static_cast<u32>(static_cast<i32>(v)) & 0xffff;
}
u32 mad_16(u32 x, u32 y, u32 z) {
    return x * y + z;
}

bool is_lt(float x, float y) {
    return x < y;
}
bool is_eq(float x, float y) {
    return x == y;
}
bool is_le(float x, float y) {
    return x <= y;
}
bool is_gt(float x, float y) {
    return x > y;
}
bool is_lg(float x, float y) {
    return x < y || x > y;
}
bool is_ge(float x, float y) {
    return x >= y;
}
bool is_o(float x, float y) {
    return x == x && y == y;
}
bool is_u(float x, float y) {
    return x != x || y != y;
}
bool is_nge(float x, float y) {
    return !(x >= y);
}
bool is_nlg(float x, float y) {
    return !(x < y || x > y);
}
bool is_ngt(float x, float y) {
    return !(x > y);
}
bool is_nle(float x, float y) {
    return !(x <= y);
}
bool is_neq(float x, float y) {
    return x != y;
}
bool is_nlt(float x, float y) {
    return !(x < y);
}

constexpr Opcode raw(std::string_view name, std::string_view form, Handler handler, std::uint32_t flags) {
    return {name, form, handler, Category::valu, flags, nullptr, 0, 0};
}
// Computed by a unit of its own, at a quarter of the rate.
constexpr Opcode slow(Opcode opcode) {
    opcode.category = Category::transcendental;
    return opcode;
}
constexpr std::uint32_t kSources = kSourceModifiers;
constexpr std::uint32_t kParts = kSourceModifiers | kHalf | kNoDpp;
constexpr std::uint32_t kPair = kOpSel | kNegPacked | kNoDpp;

template <auto F, int Sources>
constexpr Opcode zero(std::string_view name, std::string_view form, std::uint32_t flags = kSources) {
    return raw(name, form, half_op<F, Sources, Other::zero>, flags);
}
template <auto F>
constexpr Opcode kept(std::string_view name, std::string_view form, std::uint32_t flags = kParts) {
    return raw(name, form, half_op<F, 3, Other::kept>, flags);
}

#define KILN_CMP(word)                                                   \
    raw("v_cmp_" #word "_f16", "c:hh", cmp<is_##word, false>, kSources), \
        raw("v_cmpx_" #word "_f16", "c:hh", cmp<is_##word, true>, kSources)

constexpr Opcode kOpcodes[] = {
    raw("v_cvt_f32_f16", "v:h", cvt_f32_f16, kSources),
    zero<add, 2>("v_add_f16", "v:hh"),
    zero<sub, 2>("v_sub_f16", "v:hh"),
    zero<subrev, 2>("v_subrev_f16", "v:hh"),
    zero<mul, 2>("v_mul_f16", "v:hh"),
    zero<min_of, 2>("v_min_f16", "v:hh"),
    zero<max_of, 2>("v_max_f16", "v:hh"),
    zero<fma_f16, 3>("v_fmac_f16", "v:hh+"),
    slow(zero<through_f32<n::v_rcp_f32>, 1>("v_rcp_f16", "v:h")),
    slow(zero<through_f32<n::v_rsq_f32>, 1>("v_rsq_f16", "v:h")),
    slow(zero<through_f32<n::v_sqrt_f32>, 1>("v_sqrt_f16", "v:h")),
    slow(zero<through_f32<n::v_exp_f32>, 1>("v_exp_f16", "v:h")),
    slow(zero<through_f32<n::v_log_f32>, 1>("v_log_f16", "v:h")),
    slow(zero<through_f32<n::v_sin_f32>, 1>("v_sin_f16", "v:h")),
    slow(zero<through_f32<n::v_cos_f32>, 1>("v_cos_f16", "v:h")),
    zero<through_f32<n::v_floor_f32>, 1>("v_floor_f16", "v:h"),
    zero<through_f32<n::v_ceil_f32>, 1>("v_ceil_f16", "v:h"),
    zero<through_f32<n::v_trunc_f32>, 1>("v_trunc_f16", "v:h"),
    zero<through_f32<n::v_rndne_f32>, 1>("v_rndne_f16", "v:h"),
    zero<through_f32<n::v_fract_f32>, 1>("v_fract_f16", "v:h"),
    zero<ldexp16, 2>("v_ldexp_f16", "v:hi"),
    zero<from_u16, 1>("v_cvt_f16_u16", "v:i", 0),
    zero<from_i16, 1>("v_cvt_f16_i16", "v:i", 0),
    zero<to_u16, 1>("v_cvt_u16_f16", "v:h"),
    zero<to_i16, 1>("v_cvt_i16_f16", "v:h"),
    kept<fma_f16>("v_fma_f16", "v:hhh"),
    kept<min3>("v_min3_f16", "v:hhh"),
    kept<max3>("v_max3_f16", "v:hhh"),
    kept<div_fixup>("v_div_fixup_f16", "v:hhh"),
    kept<mad_16>("v_mad_u16", "v:iii", kHalf | kNoDpp),
    kept<mad_16>("v_mad_i16", "v:iii", kHalf | kNoDpp),
    raw("v_pack_b32_f16", "v:hh", pack_b32_f16, kParts),
    raw("v_pk_add_f16", "v:pp", packed_op<add, 2>, kPair),
    raw("v_pk_mul_f16", "v:pp", packed_op<mul, 2>, kPair),
    raw("v_pk_min_f16", "v:pp", packed_op<min_of, 2>, kPair),
    raw("v_pk_max_f16", "v:pp", packed_op<max_of, 2>, kPair),
    raw("v_pk_fma_f16", "v:ppp", packed_op<fma_f16, 3>, kPair),
    raw("v_fma_mix_f32", "v:fff", fma_mix<Mix::f32>, kSourceModifiers | kOpSel | kNoDpp),
    raw("v_fma_mixlo_f16", "v:fff", fma_mix<Mix::low>, kSourceModifiers | kOpSel | kNoDpp),
    raw("v_fma_mixhi_f16", "v:fff", fma_mix<Mix::high>, kSourceModifiers | kOpSel | kNoDpp),
    KILN_CMP(lt),
    KILN_CMP(eq),
    KILN_CMP(le),
    KILN_CMP(gt),
    KILN_CMP(lg),
    KILN_CMP(ge),
    KILN_CMP(o),
    KILN_CMP(u),
    KILN_CMP(nge),
    KILN_CMP(nlg),
    KILN_CMP(ngt),
    KILN_CMP(nle),
    KILN_CMP(neq),
    KILN_CMP(nlt),
};

}  // namespace

std::span<const Opcode> half_opcodes() {
    return kOpcodes;
}

}  // namespace kiln::sim::KILN_SIM_LEVEL
