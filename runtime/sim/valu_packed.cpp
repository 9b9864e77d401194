// Packed instructions: two float32 in a register pair, or two 16-bit integers in one register. op_sel picks
// the part of each source that the low result takes, op_sel_hi the one for the high result.
#include "runtime/sim/lanes.hpp"
#include "runtime/sim/table.hpp"

namespace kiln::sim::KILN_SIM_LEVEL {
namespace {

struct Add {
    KILN_INLINE static u32 apply(u32 x, u32 y, u32) { return settle_nan(b(f(x) + f(y)), x, y, y); }
};
struct Mul {
    KILN_INLINE static u32 apply(u32 x, u32 y, u32) { return settle_nan(b(f(x) * f(y)), x, y, y); }
};
struct Fma {
    KILN_INLINE static u32 apply(u32 x, u32 y, u32 z) {
        return settle_nan(b(__builtin_fmaf(f(x), f(y), f(z))), x, y, z);
    }
};

// One half of a 64-bit source; of a constant, which has no halves, the whole.
KILN_INLINE const u32* half_of(const Wave& w, const Operand& o, bool high, bool negate, u32* room, u64& ok) {
    const u32* lanes;
    if (o.kind == Operand::vgpr) {
        lanes = w.rows[o.index + high];
        ok &= w.defined[o.index + high];
    } else if (o.kind == Operand::sgpr) {
        splat(room, w.sgprs[o.index + high]);
        ok &= w.sgprs_defined[o.index + high] == ~0u ? kAllLanes : 0;
        lanes = room;
    } else {
        lanes = o.row + (high ? kLanes : 0);
    }
    if (negate) {
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            room[lane] = lanes[lane] ^ 0x80000000u;
        }
        lanes = room;
    }
    return lanes;
}

template <class Op, int Sources>
void packed_f32(Wave& w, const Instruction& i) {
    alignas(64) u32 room[2][3][kLanes];
    alignas(64) u32 low[kLanes];
    const u32* s[2][3];
    u64 ok[2] = {kAllLanes, kAllLanes};
    for (unsigned half = 0; half < 2; ++half) {
        const unsigned select = half ? i.op_sel_hi : i.op_sel, negate = half ? i.neg_hi : i.neg_lo;
        for (unsigned n = 0; n < 3; ++n) {
            s[half][n] = n < Sources
                             ? half_of(w, i.src[n], select >> n & 1, negate >> n & 1, room[half][n], ok[half])
                             : s[half][0];
        }
    }
    const u64 exec = w.exec();
    if (exec & ~(ok[0] & ok[1])) [[unlikely]] {
        const Origin origin = origin_of(w, i, exec & ~(ok[0] & ok[1]));
        for (unsigned half = 0; half < 2; ++half) {
            mark_undefined(w, i, i.dst.index + half, exec & ~ok[half]);
            w.origins[i.dst.index + half] = origin;
        }
    }
    const u32* m = w.lanes_of_exec();
    u32* d = w.rows[i.dst.index];
    // The low result may overwrite a source of the high one, so it waits.
#pragma GCC ivdep
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        low[lane] = Op::apply(s[0][0][lane], s[0][1][lane], s[0][2][lane]);
    }
#pragma GCC ivdep
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const u32 value = Op::apply(s[1][0][lane], s[1][1][lane], s[1][2][lane]);
        d[kLanes + lane] = (value & m[lane]) | (d[kLanes + lane] & ~m[lane]);
        d[lane] = (low[lane] & m[lane]) | (d[lane] & ~m[lane]);
    }
    finish(w, i.dst.index, exec, ok[0]);
    finish(w, i.dst.index + 1, exec, ok[1]);
}

// Takes one dword of each source: op_sel[0] of the first, op_sel[1] of the second.
void packed_mov(Wave& w, const Instruction& i) {
    alignas(64) u32 room[2][kLanes];
    u64 ok[2] = {kAllLanes, kAllLanes};
    const u32* low = half_of(w, i.src[0], i.op_sel & 1, false, room[0], ok[0]);
    const u32* high = half_of(w, i.src[1], i.op_sel >> 1 & 1, false, room[1], ok[1]);
    const u64 exec = w.exec();
    if (exec & ~(ok[0] & ok[1])) [[unlikely]] {
        const Origin origin = origin_of(w, i, exec & ~(ok[0] & ok[1]));
        u64 bytes[2][4] = {};
        for (unsigned half = 0; half < 2; ++half) {
            const unsigned row = i.src[half].index + (i.op_sel >> half & 1);
            for (unsigned n = 0; n < 4 && i.src[half].kind == Operand::vgpr; ++n) {
                bytes[half][n] = w.byte_defined(row, n);
            }
        }
        for (unsigned half = 0; half < 2; ++half) {
            mark_undefined(w, i, i.dst.index + half, exec & ~ok[half]);
            for (unsigned n = 0; n < 4; ++n) {
                w.bytes_defined[i.dst.index + half][n] |= exec & ~ok[half] & bytes[half][n];
            }
            w.origins[i.dst.index + half] = origin;
        }
    }
    const u32* m = w.lanes_of_exec();
    u32* d = w.rows[i.dst.index];
#pragma GCC ivdep
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const u32 x = low[lane], y = high[lane];
        d[lane] = (x & m[lane]) | (d[lane] & ~m[lane]);
        d[kLanes + lane] = (y & m[lane]) | (d[kLanes + lane] & ~m[lane]);
    }
    finish(w, i.dst.index, exec, ok[0]);
    finish(w, i.dst.index + 1, exec, ok[1]);
}

#define KILN_OP(name, expression)                                                    \
    struct name {                                                                    \
        KILN_INLINE static u32 apply([[maybe_unused]] u32 x, [[maybe_unused]] u32 y, \
                                     [[maybe_unused]] u32 z) {                       \
            return static_cast<u32>(expression) & 0xffff;                            \
        }                                                                            \
    }
KILN_INLINE i32 s16(u32 x) {
    return static_cast<std::int16_t>(x);
}
KILN_OP(Add_16, x + y);
KILN_OP(Sub_16, x - y);
KILN_OP(Mul_16, x* y);
KILN_OP(Mad_16, x* y + z);
KILN_OP(Lshlrev_16, y << (x & 15));
KILN_OP(Lshrrev_16, y >> (x & 15));
KILN_OP(Ashrrev_16, s16(y) >> (x & 15));
KILN_OP(Min_u, x < y ? x : y);
KILN_OP(Max_u, x > y ? x : y);
KILN_OP(Min_i, s16(x) < s16(y) ? x : y);
KILN_OP(Max_i, s16(x) > s16(y) ? x : y);

template <class Op, int Sources>
void packed_16(Wave& w, const Instruction& i) {
    alignas(64) u32 room[3][kLanes];
    u64 ok = kAllLanes;
    const u32* s[3];
    for (int n = 0; n < 3; ++n) {
        s[n] = n < Sources ? fetch<1>(w, i.src[n], room[n], ok) : s[0];
    }
    const u64 exec = w.exec();
    if (exec & ~ok) [[unlikely]] {
        follow_undefined(w, i, exec & ~ok);
    }
    u32 low[3], high[3];
    for (unsigned n = 0; n < 3; ++n) {
        low[n] = (i.op_sel >> n & 1) * 16;
        high[n] = (i.op_sel_hi >> n & 1) * 16;
    }
    const u32* m = w.lanes_of_exec();
    u32* d = w.rows[i.dst.index];
#pragma GCC ivdep
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        u32 value = Op::apply(s[0][lane] >> low[0] & 0xffff, s[1][lane] >> low[1] & 0xffff,
                              s[2][lane] >> low[2] & 0xffff);
        value |= Op::apply(s[0][lane] >> high[0] & 0xffff, s[1][lane] >> high[1] & 0xffff,
                           s[2][lane] >> high[2] & 0xffff)
                 << 16;
        d[lane] = (value & m[lane]) | (d[lane] & ~m[lane]);
    }
    finish(w, i.dst.index, exec, ok);
}

template <class Op, int Sources>
constexpr Opcode floats(std::string_view name, std::string_view form) {
    return {name, form, packed_f32<Op, Sources>, Category::valu, kOpSel | kNegPacked | kNoDpp, nullptr, 0, 0};
}
template <class Op, int Sources>
constexpr Opcode halves(std::string_view name, std::string_view form) {
    return {name, form, packed_16<Op, Sources>, Category::valu, kOpSel | kNoDpp, nullptr, 0, 0};
}

constexpr Opcode kOpcodes[] = {
    floats<Add, 2>("v_pk_add_f32", "w:PP"),
    floats<Mul, 2>("v_pk_mul_f32", "w:PP"),
    floats<Fma, 3>("v_pk_fma_f32", "w:PPP"),
    {"v_pk_mov_b32", "w:QQ", packed_mov, Category::valu, kOpSel | kNoDpp, nullptr, 0, 0},
    halves<Add_16, 2>("v_pk_add_u16", "v:pp"),
    halves<Sub_16, 2>("v_pk_sub_u16", "v:pp"),
    halves<Add_16, 2>("v_pk_add_i16", "v:pp"),
    halves<Sub_16, 2>("v_pk_sub_i16", "v:pp"),
    halves<Mul_16, 2>("v_pk_mul_lo_u16", "v:pp"),
    halves<Mad_16, 3>("v_pk_mad_u16", "v:ppp"),
    halves<Mad_16, 3>("v_pk_mad_i16", "v:ppp"),
    halves<Lshlrev_16, 2>("v_pk_lshlrev_b16", "v:pp"),
    halves<Lshrrev_16, 2>("v_pk_lshrrev_b16", "v:pp"),
    halves<Ashrrev_16, 2>("v_pk_ashrrev_i16", "v:pp"),
    halves<Min_u, 2>("v_pk_min_u16", "v:pp"),
    halves<Max_u, 2>("v_pk_max_u16", "v:pp"),
    halves<Min_i, 2>("v_pk_min_i16", "v:pp"),
    halves<Max_i, 2>("v_pk_max_i16", "v:pp"),
};

}  // namespace

std::span<const Opcode> packed_opcodes() {
    return kOpcodes;
}

}  // namespace kiln::sim::KILN_SIM_LEVEL
