// Vector instructions that make or use lane masks: comparisons, selection, carries.
#include "runtime/sim/lanes.hpp"
#include "runtime/sim/table.hpp"

namespace kiln::sim::KILN_SIM_LEVEL {
namespace {

enum Type : std::uint32_t { f32, f64t, i16, u16, i32t, u32t, i64t, u64t };
// Floats: bit 0 less, bit 1 equal, bit 2 greater, bit 3 unordered. Integers: bits 0 to 2.
enum Condition : std::uint32_t {
    kF = 0,
    kLt = 1,
    kEq = 2,
    kLe = 3,
    kGt = 4,
    kLg = 5,
    kGe = 6,
    kO = 7,
    kU = 8,
    kNge = 9,
    kNlg = 10,
    kNgt = 11,
    kNle = 12,
    kNeq = 13,
    kNlt = 14,
    kT = 15
};

template <class T, std::uint32_t Condition>
KILN_INLINE u32 compare(T x, T y) {
    bool result = false;
    if constexpr (Condition & 1)
        result |= x < y;
    if constexpr (Condition & 2)
        result |= x == y;
    if constexpr (Condition & 4)
        result |= x > y;
    if constexpr (Condition & 8 && static_cast<T>(0.5f) != static_cast<T>(0))
        result |= x != x || y != y;
    if constexpr (Condition == kT)
        result = true;
    return result ? ~0u : 0;
}

KILN_INLINE u64 low_half_defined(const Wave& w, const Operand& o) {
    if (o.kind == Operand::vgpr) {
        return w.byte_defined(o.index, 0) & w.byte_defined(o.index, 1);
    }
    return o.kind == Operand::sgpr && (~w.sgprs_defined[o.index] & 0xffff) ? 0 : kAllLanes;
}

template <std::uint32_t T, std::uint32_t C, bool Exec>
void cmp(Wave& w, const Instruction& i) {
    constexpr int kDwords = T == f64t || T == i64t || T == u64t ? 2 : 1;
    alignas(64) u32 room[2][2 * kLanes];
    alignas(64) u32 result[kLanes];
    u64 ok = kAllLanes;
    const u32* x = fetch<kDwords>(w, i.src[0], room[0], ok);
    const u32* y = fetch<kDwords>(w, i.src[1], room[1], ok);
#pragma GCC ivdep
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        if constexpr (kDwords == 2) {
            const u64 a = x[lane] | static_cast<u64>(x[kLanes + lane]) << 32;
            const u64 c = y[lane] | static_cast<u64>(y[kLanes + lane]) << 32;
            if constexpr (T == f64t)
                result[lane] = compare<double, C>(f64(a), f64(c));
            if constexpr (T == i64t)
                result[lane] = compare<i64, C>(static_cast<i64>(a), static_cast<i64>(c));
            if constexpr (T == u64t)
                result[lane] = compare<u64, C>(a, c);
        } else {
            const u32 a = x[lane], c = y[lane];
            if constexpr (T == f32)
                result[lane] = compare<float, C>(f(a), f(c));
            if constexpr (T == i32t)
                result[lane] = compare<i32, C>(static_cast<i32>(a), static_cast<i32>(c));
            if constexpr (T == u32t)
                result[lane] = compare<u32, C>(a, c);
            if constexpr (T == i16)
                result[lane] = compare<i32, C>(static_cast<std::int16_t>(a), static_cast<std::int16_t>(c));
            if constexpr (T == u16)
                result[lane] = compare<u32, C>(a & 0xffff, c & 0xffff);
        }
    }
    const u64 exec = w.exec();
    if constexpr (T == i16 || T == u16) {
        if (exec & ~ok) [[unlikely]] {  // only the low halves are read
            ok = low_half_defined(w, i.src[0]) & low_half_defined(w, i.src[1]);
        }
    }
    const u64 mask = pack_lanes(result);
    write_mask(w, i, i.dst, mask, exec, ok);
    if constexpr (Exec) {
        if (exec & ~ok) [[unlikely]] {
            fault_undefined(w, i, "EXEC", __builtin_ctzll(exec & ~ok), origin_of(w, i, exec & ~ok));
        }
        w.set_exec(mask & exec);
    }
}

// Signalling NaN, quiet NaN, -inf, -normal, -denormal, -0, +0, +denormal, +normal, +inf.
KILN_INLINE u32 class_bit(u32 x) {
    const u32 magnitude = x & 0x7fffffffu;
    const bool negative = x >> 31;
    if (magnitude > 0x7f800000u)
        return magnitude & 0x400000u ? 2 : 1;
    if (magnitude == 0x7f800000u)
        return negative ? 1u << 2 : 1u << 9;
    if (magnitude >= 0x00800000u)
        return negative ? 1u << 3 : 1u << 8;
    if (magnitude != 0)
        return negative ? 1u << 4 : 1u << 7;
    return negative ? 1u << 5 : 1u << 6;
}
KILN_INLINE u32 class_bit64(u64 x) {
    const u64 magnitude = x & ~(u64{1} << 63);
    const bool negative = x >> 63;
    if (magnitude > 0x7ff0000000000000u)
        return magnitude >> 51 & 1 ? 2 : 1;
    if (magnitude == 0x7ff0000000000000u)
        return negative ? 1u << 2 : 1u << 9;
    if (magnitude >= 0x0010000000000000u)
        return negative ? 1u << 3 : 1u << 8;
    if (magnitude != 0)
        return negative ? 1u << 4 : 1u << 7;
    return negative ? 1u << 5 : 1u << 6;
}

template <bool Wide, bool Exec>
void cmp_class(Wave& w, const Instruction& i) {
    alignas(64) u32 room[2][2 * kLanes];
    u64 ok = kAllLanes;
    const u32* x = fetch < Wide ? 2 : 1 > (w, i.src[0], room[0], ok);
    const u32* y = fetch<1>(w, i.src[1], room[1], ok);
    const u64 exec = w.exec();
    u64 mask = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const u32 bit = Wide ? class_bit64(x[lane] | static_cast<u64>(x[(Wide ? kLanes : 0) + lane]) << 32)
                             : class_bit(x[lane]);
        mask |= static_cast<u64>((bit & y[lane]) != 0) << lane;
    }
    write_mask(w, i, i.dst, mask, exec, ok);
    if constexpr (Exec) {
        if (exec & ~ok) [[unlikely]] {
            fault_undefined(w, i, "EXEC", __builtin_ctzll(exec & ~ok), origin_of(w, i, exec & ~ok));
        }
        w.set_exec(mask & exec);
    }
}

// The second source where the mask is set, else the first. Only the one that is chosen need be defined.
void cndmask(Wave& w, const Instruction& i) {
    alignas(64) u32 room[2][kLanes];
    alignas(64) u32 choice[kLanes];
    u64 ok_x = kAllLanes, ok_y = kAllLanes, ok_mask = kAllLanes;
    const u32* x = fetch<1>(w, i.src[0], room[0], ok_x);
    const u32* y = fetch<1>(w, i.src[1], room[1], ok_y);
    const u64 mask = fetch_mask(w, i.src[2], ok_mask);
    const u64 exec = w.exec();
    const u64 ok = ok_mask & ((mask & ok_y) | (~mask & ok_x));
    if (exec & ~ok) [[unlikely]] {
        const Origin origin = origin_of(w, i, exec & ~ok);
        u64 bytes[4];
        for (unsigned n = 0; n < 4; ++n) {
            const u64 in_x = i.src[0].kind == Operand::vgpr ? w.byte_defined(i.src[0].index, n) : ok_x;
            const u64 in_y = i.src[1].kind == Operand::vgpr ? w.byte_defined(i.src[1].index, n) : ok_y;
            bytes[n] = ok_mask & ((mask & in_y) | (~mask & in_x));
        }
        mark_undefined(w, i, i.dst.index, exec & ~ok);
        for (unsigned n = 0; n < 4; ++n) {
            w.bytes_defined[i.dst.index][n] |= exec & ~ok & bytes[n];
        }
        w.origins[i.dst.index] = origin;
    }
    unpack_lanes(mask, choice);
    const u32* m = w.lanes_of_exec();
    u32* d = w.rows[i.dst.index];
#pragma GCC ivdep
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const u32 value = (y[lane] & choice[lane]) | (x[lane] & ~choice[lane]);
        d[lane] = (value & m[lane]) | (d[lane] & ~m[lane]);
    }
    finish(w, i.dst.index, exec, ok);
}

enum class Sum { add, sub, subrev };

// Addition or subtraction with a carry or borrow mask out and, with `Carry`, in.
template <Sum Kind, bool Carry>
void carry(Wave& w, const Instruction& i) {
    alignas(64) u32 room[2][kLanes];
    alignas(64) u32 in[kLanes], out[kLanes];
    u64 ok = kAllLanes;
    const u32* x = fetch<1>(w, i.src[Kind == Sum::subrev ? 1 : 0], room[0], ok);
    const u32* y = fetch<1>(w, i.src[Kind == Sum::subrev ? 0 : 1], room[1], ok);
    if constexpr (Carry) {
        unpack_lanes(fetch_mask(w, i.src[2], ok), in);
    } else {
        splat(in, 0);
    }
    const u64 exec = w.exec();
    if (exec & ~ok) [[unlikely]] {
        const Origin origin = origin_of(w, i, exec & ~ok);
        mark_undefined(w, i, i.dst.index, exec & ~ok);
        w.origins[i.dst.index] = origin;
    }
    // Before the destination is overwritten: it may be the origin of the mask's undefined bits.
    write_mask(w, i, i.dst2, 0, exec, ok);
    const u32* m = w.lanes_of_exec();
    u32* d = w.rows[i.dst.index];
#pragma GCC ivdep
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const u32 a = x[lane], c = y[lane], one = in[lane] & 1;
        u32 value;
        bool over;
        if constexpr (Kind == Sum::add) {
            const u32 part = a + c;
            value = part + one;
            over = (part < a) | (value < part);
        } else {
            const u32 part = a - c;
            value = part - one;
            over = (a < c) | (part < one);
        }
        out[lane] = over ? ~0u : 0;
        d[lane] = (value & m[lane]) | (d[lane] & ~m[lane]);
    }
    const u64 packed = pack_lanes(out) & exec;
    w.sgprs[i.dst2.index] = static_cast<u32>(packed);
    w.sgprs[i.dst2.index + 1] = static_cast<u32>(packed >> 32);
    finish(w, i.dst.index, exec, ok);
}

#define KILN_CMP(type, text, form, flags, condition, word)                                                   \
    {"v_cmp_" word "_" text, "c:" form, cmp<type, condition, false>, Category::valu, flags, nullptr, 0, 0},  \
    {                                                                                                        \
        "v_cmpx_" word "_" text, "c:" form, cmp<type, condition, true>, Category::valu, flags, nullptr, 0, 0 \
    }
#define KILN_CMP_INT(type, text, form)                                                      \
    KILN_CMP(type, text, form, 0, kF, "f"), KILN_CMP(type, text, form, 0, kLt, "lt"),       \
        KILN_CMP(type, text, form, 0, kEq, "eq"), KILN_CMP(type, text, form, 0, kLe, "le"), \
        KILN_CMP(type, text, form, 0, kGt, "gt"), KILN_CMP(type, text, form, 0, kLg, "ne"), \
        KILN_CMP(type, text, form, 0, kGe, "ge"), KILN_CMP(type, text, form, 0, kT, "t")
#define KILN_CMP_FLOAT(type, text, form)                           \
    KILN_CMP(type, text, form, kSourceModifiers, kF, "f"),         \
        KILN_CMP(type, text, form, kSourceModifiers, kLt, "lt"),   \
        KILN_CMP(type, text, form, kSourceModifiers, kEq, "eq"),   \
        KILN_CMP(type, text, form, kSourceModifiers, kLe, "le"),   \
        KILN_CMP(type, text, form, kSourceModifiers, kGt, "gt"),   \
        KILN_CMP(type, text, form, kSourceModifiers, kLg, "lg"),   \
        KILN_CMP(type, text, form, kSourceModifiers, kGe, "ge"),   \
        KILN_CMP(type, text, form, kSourceModifiers, kO, "o"),     \
        KILN_CMP(type, text, form, kSourceModifiers, kU, "u"),     \
        KILN_CMP(type, text, form, kSourceModifiers, kNge, "nge"), \
        KILN_CMP(type, text, form, kSourceModifiers, kNlg, "nlg"), \
        KILN_CMP(type, text, form, kSourceModifiers, kNgt, "ngt"), \
        KILN_CMP(type, text, form, kSourceModifiers, kNle, "nle"), \
        KILN_CMP(type, text, form, kSourceModifiers, kNeq, "neq"), \
        KILN_CMP(type, text, form, kSourceModifiers, kNlt, "nlt"), \
        KILN_CMP(type, text, form, kSourceModifiers, kT, "tru")

constexpr Opcode kOpcodes[] = {
    KILN_CMP_FLOAT(f32, "f32", "ff"),
    KILN_CMP_FLOAT(f64t, "f64", "FF"),
    KILN_CMP_INT(i16, "i16", "ii"),
    KILN_CMP_INT(u16, "u16", "ii"),
    KILN_CMP_INT(i32t, "i32", "uu"),
    KILN_CMP_INT(u32t, "u32", "uu"),
    KILN_CMP_INT(i64t, "i64", "II"),
    KILN_CMP_INT(u64t, "u64", "UU"),
    {"v_cmp_class_f32", "c:fu", cmp_class<false, false>, Category::valu, kSourceModifiers, nullptr, 0, 0},
    {"v_cmpx_class_f32", "c:fu", cmp_class<false, true>, Category::valu, kSourceModifiers, nullptr, 0, 0},
    {"v_cmp_class_f64", "c:Fu", cmp_class<true, false>, Category::valu, kSourceModifiers, nullptr, 0, 0},
    {"v_cmpx_class_f64", "c:Fu", cmp_class<true, true>, Category::valu, kSourceModifiers, nullptr, 0, 0},
    {"v_cndmask_b32", "v:ffm", cndmask, Category::valu, kSourceModifiers, nullptr, 0, 0},
    {"v_add_co_u32", "vc:uu", carry<Sum::add, false>, Category::valu, 0, nullptr, 0, 0},
    {"v_sub_co_u32", "vc:uu", carry<Sum::sub, false>, Category::valu, 0, nullptr, 0, 0},
    {"v_subrev_co_u32", "vc:uu", carry<Sum::subrev, false>, Category::valu, 0, nullptr, 0, 0},
    {"v_addc_co_u32", "vc:uum", carry<Sum::add, true>, Category::valu, 0, nullptr, 0, 0},
    {"v_subb_co_u32", "vc:uum", carry<Sum::sub, true>, Category::valu, 0, nullptr, 0, 0},
    {"v_subbrev_co_u32", "vc:uum", carry<Sum::subrev, true>, Category::valu, 0, nullptr, 0, 0},
};

}  // namespace

std::span<const Opcode> compare_opcodes() {
    return kOpcodes;
}

}  // namespace kiln::sim::KILN_SIM_LEVEL
