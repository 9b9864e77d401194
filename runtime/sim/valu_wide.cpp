// Vector instructions with 64-bit results or sources: integers and float64.
#include "runtime/sim/lanes.hpp"
#include "runtime/sim/table.hpp"

namespace kiln::sim::KILN_SIM_LEVEL {
namespace {

// `low_from_low`: bits 31:0 of the result depend on bits 31:0 of the sources only.
#define KILN_OP(name, low_from_low, expression)                                      \
    struct name {                                                                    \
        static constexpr bool kLowFromLow = low_from_low;                            \
        KILN_INLINE static u64 apply([[maybe_unused]] u64 x, [[maybe_unused]] u64 y, \
                                     [[maybe_unused]] u64 z) {                       \
            return static_cast<u64>(expression);                                     \
        }                                                                            \
    }
#define KILN_NARROW(name, expression)                                                \
    struct name {                                                                    \
        KILN_INLINE static u32 apply([[maybe_unused]] u64 x, [[maybe_unused]] u64 y, \
                                     [[maybe_unused]] u64 z) {                       \
            return static_cast<u32>(expression);                                     \
        }                                                                            \
    }

KILN_OP(Lshlrev, true, y << (x & 63));
KILN_OP(Lshrrev, false, y >> (x & 63));
KILN_OP(Ashrrev, false, static_cast<i64>(y) >> (x & 63));
KILN_OP(Lshl_add, true, (x << (y & 7)) + z);

KILN_OP(Add, false, settle_nan64(b64(f64(x) + f64(y)), x, y, y));
KILN_OP(Mul, false, settle_nan64(b64(f64(x) * f64(y)), x, y, y));
KILN_OP(Fma, false, settle_nan64(b64(__builtin_fma(f64(x), f64(y), f64(z))), x, y, z));
KILN_INLINE u64 quiet(u64 x) {
    return is_nan64(x) ? x | (u64{1} << 51) : x;
}
KILN_INLINE bool is_signalling(u64 x) {
    return is_nan64(x) && (x >> 51 & 1) == 0;
}
// As for float32: see valu_float.cpp.
KILN_INLINE u64 pick(u64 x, u64 y, u64 number) {
    u64 r = number;
    r = is_nan64(x) ? y : r;
    r = is_nan64(y) ? x : r;
    r = is_signalling(y) ? y : r;
    r = is_signalling(x) ? x : r;
    return quiet(r);
}
KILN_OP(Min, false, pick(x, y, f64(x) == f64(y) ? x | y : f64(x) < f64(y) ? x : y));
KILN_OP(Max, false, pick(x, y, f64(x) == f64(y) ? x & y : f64(x) > f64(y) ? x : y));
KILN_OP(Trunc, false, quiet(b64(__builtin_trunc(f64(x)))));
KILN_OP(Floor, false, quiet(b64(__builtin_floor(f64(x)))));
KILN_OP(Ceil, false, quiet(b64(__builtin_ceil(f64(x)))));
KILN_OP(Rndne, false, quiet(b64(__builtin_nearbyint(f64(x)))));
KILN_OP(Cvt_f64_f32, false,
        is_nan(static_cast<u32>(x)) ? (x & 0x80000000u) << 32 | u64{0x7ff8} << 48 | (x & 0x7fffff) << 29
                                    : b64(f(static_cast<u32>(x))));
KILN_OP(Cvt_f64_i32, false, b64(static_cast<i32>(x)));
KILN_OP(Cvt_f64_u32, false, b64(static_cast<u32>(x)));
KILN_INLINE u64 scale(u64 x, u64 y) {
    i32 n = static_cast<i32>(y);
    n = n > 5000 ? 5000 : n < -5000 ? -5000 : n;
    return b64(__builtin_ldexp(f64(x), n));
}
KILN_OP(Ldexp, false, quiet(scale(x, y)));
// In [0.5, 1); infinity and NaN as they are.
KILN_INLINE u64 mantissa(u64 x) {
    int exponent = 0;
    return (x >> 52 & 0x7ff) == 0x7ff ? quiet(x) : b64(__builtin_frexp(f64(x), &exponent));
}
KILN_INLINE u32 exponent_of(u64 x) {
    int exponent = 0;
    if ((x >> 52 & 0x7ff) != 0x7ff) {
        (void)__builtin_frexp(f64(x), &exponent);
    }
    return static_cast<u32>(exponent);
}
// x - floor(x), below 1.
KILN_INLINE u64 fraction(u64 x) {
    const double part = f64(x) - __builtin_floor(f64(x));
    return settle_nan64(b64(part < 1.0 ? part : part == 1.0 ? 0x1.fffffffffffffp-1 : part), x, x, x);
}
KILN_OP(Mantissa, false, mantissa(x));
KILN_OP(Fract, false, fraction(x));
KILN_NARROW(Exponent, exponent_of(x));

KILN_NARROW(Cvt_f32_f64, is_nan64(x) ? static_cast<u32>((x >> 63) << 31) | 0x7fc00000u |
                                           (static_cast<u32>(x >> 29) & 0x7fffffu)
                                     : b(static_cast<float>(f64(x))));
KILN_NARROW(Cvt_i32_f64, is_nan64(x)               ? 0
                         : f64(x) >= 2147483647.0  ? 0x7fffffffu
                         : f64(x) <= -2147483648.0 ? 0x80000000u
                                                   : static_cast<u32>(static_cast<i32>(f64(x))));
KILN_NARROW(Cvt_u32_f64, is_nan64(x) || f64(x) <= 0 ? 0
                         : f64(x) >= 4294967295.0   ? 0xffffffffu
                                                    : static_cast<u32>(f64(x)));

// Both halves, each on its own: undefined halves stay where they are.
template <int Sources>
void mov_b64(Wave& w, const Instruction& i) {
    alignas(64) u32 room[2 * kLanes];
    u64 all_ok = kAllLanes;
    const u32* s = fetch<2>(w, i.src[0], room, all_ok);
    const u64 exec = w.exec();
    u64 ok[2] = {all_ok, all_ok};
    u64 bytes[2][4] = {};
    if (i.src[0].kind == Operand::vgpr) {
        for (unsigned half = 0; half < 2; ++half) {
            ok[half] = w.defined[i.src[0].index + half];
            for (unsigned n = 0; n < 4; ++n) {
                bytes[half][n] = w.byte_defined(i.src[0].index + half, n);
            }
        }
    }
    const u32* m = w.lanes_of_exec();
    u32* d = w.rows[i.dst.index];
    if (exec & ~(ok[0] & ok[1])) [[unlikely]] {
        const Origin origin = origin_of(w, i, exec & ~(ok[0] & ok[1]));
        for (unsigned half = 0; half < 2; ++half) {
            mark_undefined(w, i, i.dst.index + half, exec & ~ok[half]);
            for (unsigned n = 0; n < 4; ++n) {
                w.bytes_defined[i.dst.index + half][n] |= exec & ~ok[half] & bytes[half][n];
            }
            w.origins[i.dst.index + half] = origin;
        }
    }
#pragma GCC ivdep
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const u32 low = s[lane], high = s[kLanes + lane];
        d[lane] = (low & m[lane]) | (d[lane] & ~m[lane]);
        d[kLanes + lane] = (high & m[lane]) | (d[kLanes + lane] & ~m[lane]);
    }
    finish(w, i.dst.index, exec, ok[0]);
    finish(w, i.dst.index + 1, exec, ok[1]);
}

// x * y + z with a carry mask as second destination. The low half of the result needs only the low half of z.
template <bool Signed>
void mad64(Wave& w, const Instruction& i) {
    alignas(64) u32 room[3][2 * kLanes];
    u64 ok_low = kAllLanes;
    const u32* x = fetch<1>(w, i.src[0], room[0], ok_low);
    const u32* y = fetch<1>(w, i.src[1], room[1], ok_low);
    u64 ok_z = kAllLanes;
    const u32* z = fetch<2>(w, i.src[2], room[2], ok_z);
    const u64 ok = ok_low & ok_z;
    ok_low &= i.src[2].kind == Operand::vgpr ? w.defined[i.src[2].index] : ok_z;
    const u64 exec = w.exec();
    if (exec & ~ok) [[unlikely]] {
        const Origin origin = origin_of(w, i, exec & ~ok);
        mark_undefined(w, i, i.dst.index, exec & ~ok_low);
        mark_undefined(w, i, i.dst.index + 1, exec & ~ok);
        w.origins[i.dst.index] = w.origins[i.dst.index + 1] = origin;
    }
    write_mask(w, i, i.dst2, 0, exec, ok);
    alignas(64) u32 carry[kLanes];
    const u32* m = w.lanes_of_exec();
    u32* d = w.rows[i.dst.index];
#pragma GCC ivdep
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const u64 addend = z[lane] | static_cast<u64>(z[kLanes + lane]) << 32;
        u64 product;
        if constexpr (Signed) {
            product =
                static_cast<u64>(static_cast<i64>(static_cast<i32>(x[lane])) * static_cast<i32>(y[lane]));
        } else {
            product = static_cast<u64>(x[lane]) * y[lane];
        }
        const u64 value = product + addend;
        bool over;
        if constexpr (Signed) {
            over = static_cast<i64>((product ^ value) & (addend ^ value)) < 0;
        } else {
            over = value < addend;
        }
        carry[lane] = over ? ~0u : 0;
        d[lane] = (static_cast<u32>(value) & m[lane]) | (d[lane] & ~m[lane]);
        d[kLanes + lane] = (static_cast<u32>(value >> 32) & m[lane]) | (d[kLanes + lane] & ~m[lane]);
    }
    const u64 packed = pack_lanes(carry) & exec;
    w.sgprs[i.dst2.index] = static_cast<u32>(packed);
    w.sgprs[i.dst2.index + 1] = static_cast<u32>(packed >> 32);
    finish(w, i.dst.index, exec, ok_low);
    finish(w, i.dst.index + 1, exec, ok);
}

constexpr std::uint32_t kFloat = kSourceModifiers | kNoDpp;

constexpr Opcode kOpcodes[] = {
    {"v_mov_b64", "w:U", mov_b64<1>, Category::valu, kNoDpp, nullptr, 0, 0},
    {"v_lshlrev_b64", "w:uU", lanes64<Lshlrev, 2, 2>, Category::valu, kNoDpp, nullptr, 0, 0},
    {"v_lshrrev_b64", "w:uU", lanes64<Lshrrev, 2, 2>, Category::valu, kNoDpp, nullptr, 0, 0},
    {"v_ashrrev_i64", "w:uU", lanes64<Ashrrev, 2, 2>, Category::valu, kNoDpp, nullptr, 0, 0},
    {"v_lshl_add_u64", "w:UuU", lanes64<Lshl_add, 3, 5>, Category::valu, kNoDpp, nullptr, 0, 0},
    {"v_mad_u64_u32", "wc:uuU", mad64<false>, Category::valu, kNoDpp, nullptr, 0, 0},
    {"v_mad_i64_i32", "wc:uuU", mad64<true>, Category::valu, kNoDpp, nullptr, 0, 0},
    {"v_add_f64", "w:FF", lanes64<Add, 2, 3>, Category::valu, kFloat, nullptr, 0, 0},
    {"v_mul_f64", "w:FF", lanes64<Mul, 2, 3>, Category::valu, kFloat, nullptr, 0, 0},
    {"v_min_f64", "w:FF", lanes64<Min, 2, 3>, Category::valu, kFloat, nullptr, 0, 0},
    {"v_max_f64", "w:FF", lanes64<Max, 2, 3>, Category::valu, kFloat, nullptr, 0, 0},
    {"v_fma_f64", "w:FFF", lanes64<Fma, 3, 7>, Category::valu, kFloat, nullptr, 0, 0},
    {"v_fmac_f64", "w:FF+", lanes64<Fma, 3, 7>, Category::valu, kFloat, nullptr, 0, 0},
    {"v_trunc_f64", "w:F", lanes64<Trunc, 1, 1>, Category::valu, kFloat, nullptr, 0, 0},
    {"v_floor_f64", "w:F", lanes64<Floor, 1, 1>, Category::valu, kFloat, nullptr, 0, 0},
    {"v_ceil_f64", "w:F", lanes64<Ceil, 1, 1>, Category::valu, kFloat, nullptr, 0, 0},
    {"v_rndne_f64", "w:F", lanes64<Rndne, 1, 1>, Category::valu, kFloat, nullptr, 0, 0},
    {"v_frexp_mant_f64", "w:F", lanes64<Mantissa, 1, 1>, Category::valu, kFloat, nullptr, 0, 0},
    {"v_frexp_exp_i32_f64", "v:F", lanes64to32<Exponent, 1, 1>, Category::valu, kFloat, nullptr, 0, 0},
    {"v_fract_f64", "w:F", lanes64<Fract, 1, 1>, Category::valu, kFloat, nullptr, 0, 0},
    {"v_ldexp_f64", "w:Fu", lanes64<Ldexp, 2, 1>, Category::valu, kFloat, nullptr, 0, 0},
    {"v_cvt_f64_f32", "w:f", lanes64<Cvt_f64_f32, 1, 0>, Category::valu, kFloat, nullptr, 0, 0},
    {"v_cvt_f64_i32", "w:u", lanes64<Cvt_f64_i32, 1, 0>, Category::valu, kNoDpp, nullptr, 0, 0},
    {"v_cvt_f64_u32", "w:u", lanes64<Cvt_f64_u32, 1, 0>, Category::valu, kNoDpp, nullptr, 0, 0},
    {"v_cvt_f32_f64", "v:F", lanes64to32<Cvt_f32_f64, 1, 1>, Category::valu, kFloat, nullptr, 0, 0},
    {"v_cvt_i32_f64", "v:F", lanes64to32<Cvt_i32_f64, 1, 1>, Category::valu, kFloat, nullptr, 0, 0},
    {"v_cvt_u32_f64", "v:F", lanes64to32<Cvt_u32_f64, 1, 1>, Category::valu, kFloat, nullptr, 0, 0},
};

}  // namespace

std::span<const Opcode> wide_opcodes() {
    return kOpcodes;
}

}  // namespace kiln::sim::KILN_SIM_LEVEL
