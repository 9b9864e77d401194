// Vector instructions on float32 that are plain arithmetic, comparison or bit work. What needs more
// (division, transcendentals, small formats) is in valu_convert.cpp, on the functions of numeric/.
#include "runtime/sim/lanes.hpp"
#include "runtime/sim/table.hpp"

namespace kiln::sim::KILN_SIM_LEVEL {
namespace {

#define KILN_OP(name, expression)                                                    \
    struct name {                                                                    \
        KILN_INLINE static u32 apply([[maybe_unused]] u32 x, [[maybe_unused]] u32 y, \
                                     [[maybe_unused]] u32 z) {                       \
            return static_cast<u32>(expression);                                     \
        }                                                                            \
    }

KILN_OP(Add, settle_nan(b(f(x) + f(y)), x, y, y));
KILN_OP(Sub, settle_nan(b(f(x) - f(y)), x, y, y));
KILN_OP(Subrev, settle_nan(b(f(y) - f(x)), x, y, y));
KILN_OP(Mul, settle_nan(b(f(x) * f(y)), x, y, y));
KILN_OP(Fma, settle_nan(b(__builtin_fmaf(f(x), f(y), f(z))), x, y, z));

// A multiplication in which zero times anything is zero.
KILN_OP(Mul_legacy, (x << 1) == 0 || (y << 1) == 0 ? 0 : settle_nan(b(f(x) * f(y)), x, y, y));

KILN_INLINE u32 quiet(u32 x) {
    return is_nan(x) ? x | 0x400000u : x;
}
KILN_INLINE bool is_signalling(u32 x) {
    return is_nan(x) && (x & 0x400000u) == 0;
}
// Of a quiet NaN and a number the number, of a signalling NaN that one, quieted; -0 is below +0.
KILN_INLINE u32 min_of(u32 x, u32 y) {
    u32 r = f(x) < f(y) ? x : y;
    r = f(x) == f(y) ? x | y : r;
    r = is_nan(x) ? y : r;
    r = is_nan(y) ? x : r;
    r = is_signalling(y) ? y : r;
    r = is_signalling(x) ? x : r;
    return quiet(r);
}
KILN_INLINE u32 max_of(u32 x, u32 y) {
    u32 r = f(x) > f(y) ? x : y;
    r = f(x) == f(y) ? x & y : r;
    r = is_nan(x) ? y : r;
    r = is_nan(y) ? x : r;
    r = is_signalling(y) ? y : r;
    r = is_signalling(x) ? x : r;
    return quiet(r);
}
KILN_OP(Min, min_of(x, y));
KILN_OP(Max, max_of(x, y));
KILN_OP(Min3, min_of(min_of(x, y), z));
KILN_OP(Max3, max_of(max_of(x, y), z));
// With a NaN the smallest of the numbers; else the middle one.
KILN_OP(Med3, is_nan(x) || is_nan(y) || is_nan(z) ? min_of(min_of(x, y), z)
                                                  : max_of(min_of(x, y), min_of(max_of(x, y), z)));
// Those of gfx950 that let a NaN through.
KILN_INLINE u32 minimum_of(u32 x, u32 y) {
    return is_nan(x) ? quiet(x) : is_nan(y) ? quiet(y) : min_of(x, y);
}
KILN_INLINE u32 maximum_of(u32 x, u32 y) {
    return is_nan(x) ? quiet(x) : is_nan(y) ? quiet(y) : max_of(x, y);
}
KILN_OP(Minimum3, minimum_of(minimum_of(x, y), z));
KILN_OP(Maximum3, maximum_of(maximum_of(x, y), z));

// Integers from floats saturate and truncate; NaN gives 0.
KILN_INLINE u32 to_i32(u32 x) {
    const float value = f(x);
    const bool inside = value > -2147483648.0f && value < 2147483648.0f;
    const i32 whole = static_cast<i32>(inside ? value : 0.0f);
    u32 r = static_cast<u32>(whole);
    r = value >= 2147483648.0f ? 0x7fffffffu : r;
    r = value <= -2147483648.0f ? 0x80000000u : r;
    return r;
}
KILN_INLINE u32 to_u32(u32 x) {
    const float value = f(x);
    const bool low = value > 0.0f && value < 2147483648.0f;
    const bool high = value >= 2147483648.0f && value < 4294967296.0f;
    u32 r = static_cast<u32>(static_cast<i32>(low ? value : 0.0f));
    r = high ? static_cast<u32>(static_cast<i32>(high ? value - 2147483648.0f : 0.0f)) + 0x80000000u : r;
    r = value >= 4294967296.0f ? 0xffffffffu : r;
    return r;
}
KILN_OP(Cvt_i32, to_i32(x));
KILN_OP(Cvt_u32, to_u32(x));
KILN_OP(Cvt_f32_i32, b(static_cast<float>(static_cast<i32>(x))));
KILN_OP(Cvt_f32_u32, b(static_cast<float>(x)));
KILN_OP(Ubyte0, b(static_cast<float>(static_cast<i32>(x & 0xff))));
KILN_OP(Ubyte1, b(static_cast<float>(static_cast<i32>(x >> 8 & 0xff))));
KILN_OP(Ubyte2, b(static_cast<float>(static_cast<i32>(x >> 16 & 0xff))));
KILN_OP(Ubyte3, b(static_cast<float>(static_cast<i32>(x >> 24))));

// Two e4m3 numbers into one half of the destination; the other half is kept. Nearest even; what is above 464,
// infinity and NaN become NaN. numeric::encode() says the same and is what this is tested against.
KILN_INLINE u32 to_e4m3(u32 x) {
    const u32 magnitude = x & 0x7fffffffu;
    // Normal numbers: round at bit 20, then change the exponent's bias from 127 to 7.
    const u32 rounded = magnitude + 0x7ffffu + (magnitude >> 20 & 1);
    u32 code = (rounded - (120u << 23)) >> 20;
    code = rounded > (135u << 23) + 0x6fffffu ? 0x7f : code;
    // Below 2^-6 the code counts 2^-9: added to 2^14, whose last place that is, the number rounds by itself.
    const u32 small = b(f(magnitude) + 16384.0f) - 0x46800000u;
    code = magnitude < (121u << 23) ? small : code;
    return code | (x >> 24 & 0x80);
}
template <class Op>
void pack_pair(Wave& w, const Instruction& i) {
    alignas(64) u32 room[2][kLanes];
    u64 ok = kAllLanes;
    const u32* x = fetch<1>(w, i.src[0], room[0], ok);
    const u32* y = fetch<1>(w, i.src[1], room[1], ok);
    const u64 exec = w.exec();
    const bool high = i.op_sel >> 2 & 1;
    const unsigned shift = high ? 16 : 0;
    const u32 keep = high ? 0x0000ffffu : 0xffff0000u;
    mark_bytes(w, i, i.dst.index, high ? 0xc : 0x3, exec, exec & ~ok);
    const u32* m = w.lanes_of_exec();
    u32* d = w.rows[i.dst.index];
#pragma GCC ivdep
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const u32 value = (d[lane] & keep) | (Op::apply(x[lane]) | Op::apply(y[lane]) << 8) << shift;
        d[lane] = (value & m[lane]) | (d[lane] & ~m[lane]);
    }
}
struct E4m3 {
    KILN_INLINE static u32 apply(u32 x) { return to_e4m3(x); }
};

KILN_INLINE u32 to_bf16(u32 x) {
    return is_nan(x) ? x >> 16 | 0x40 : (x + 0x7fff + (x >> 16 & 1)) >> 16;
}
KILN_OP(Cvt_pk_bf16, to_bf16(x) | to_bf16(y) << 16);

template <class Op, int Sources>
constexpr Opcode op(std::string_view name, std::string_view form) {
    return {name, form, lanes32<Op, Sources>, Category::valu, kSourceModifiers | kClampOmod, nullptr, 0, 0};
}
template <class Op, int Sources>
constexpr Opcode plain(std::string_view name, std::string_view form, std::uint32_t flags = 0) {
    return {name, form, lanes32<Op, Sources>, Category::valu, flags, nullptr, 0, 0};
}

constexpr Opcode kOpcodes[] = {
    op<Add, 2>("v_add_f32", "v:ff"),
    op<Sub, 2>("v_sub_f32", "v:ff"),
    op<Subrev, 2>("v_subrev_f32", "v:ff"),
    op<Mul, 2>("v_mul_f32", "v:ff"),
    op<Mul_legacy, 2>("v_mul_legacy_f32", "v:ff"),
    op<Min, 2>("v_min_f32", "v:ff"),
    op<Max, 2>("v_max_f32", "v:ff"),
    op<Min3, 3>("v_min3_f32", "v:fff"),
    op<Max3, 3>("v_max3_f32", "v:fff"),
    op<Med3, 3>("v_med3_f32", "v:fff"),
    op<Minimum3, 3>("v_minimum3_f32", "v:fff"),
    op<Maximum3, 3>("v_maximum3_f32", "v:fff"),
    op<Fma, 3>("v_fma_f32", "v:fff"),
    op<Fma, 3>("v_fmac_f32", "v:ff+"),
    plain<Fma, 3>("v_fmamk_f32", "v:fff", kNoDpp),
    plain<Fma, 3>("v_fmaak_f32", "v:fff", kNoDpp),
    plain<Cvt_pk_bf16, 2>("v_cvt_pk_bf16_f32", "v:ff", kSourceModifiers | kNoDpp),
    {"v_cvt_pk_fp8_f32", "v:ff", pack_pair<E4m3>, Category::valu, kSourceModifiers | kHalf | kNoDpp, nullptr,
     0, 0},
    plain<Cvt_i32, 1>("v_cvt_i32_f32", "v:f", kSourceModifiers),
    plain<Cvt_u32, 1>("v_cvt_u32_f32", "v:f", kSourceModifiers),
    plain<Cvt_f32_i32, 1>("v_cvt_f32_i32", "v:u", kClampOmod),
    plain<Cvt_f32_u32, 1>("v_cvt_f32_u32", "v:u", kClampOmod),
    plain<Ubyte0, 1>("v_cvt_f32_ubyte0", "v:u", kClampOmod),
    plain<Ubyte1, 1>("v_cvt_f32_ubyte1", "v:u", kClampOmod),
    plain<Ubyte2, 1>("v_cvt_f32_ubyte2", "v:u", kClampOmod),
    plain<Ubyte3, 1>("v_cvt_f32_ubyte3", "v:u", kClampOmod),
};

}  // namespace

std::span<const Opcode> float_opcodes() {
    return kOpcodes;
}

}  // namespace kiln::sim::KILN_SIM_LEVEL
