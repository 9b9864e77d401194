// Vector instructions on 32-bit integers and bits.
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

KILN_INLINE i32 s(u32 x) {
    return static_cast<i32>(x);
}
KILN_INLINE u32 u24(u32 x) {
    return x & 0xffffff;
}
KILN_INLINE i32 i24(u32 x) {
    return static_cast<i32>(x << 8) >> 8;
}
KILN_INLINE u32 lesser(u32 x, u32 y) {
    return x < y ? x : y;
}
KILN_INLINE u32 greater(u32 x, u32 y) {
    return x > y ? x : y;
}
KILN_INLINE i32 lesser(i32 x, i32 y) {
    return x < y ? x : y;
}
KILN_INLINE i32 greater(i32 x, i32 y) {
    return x > y ? x : y;
}

KILN_OP(Mov, x);
KILN_OP(Not, ~x);
KILN_OP(And, x& y);
KILN_OP(Or, x | y);
KILN_OP(Xor, x ^ y);
KILN_OP(Xnor, ~(x ^ y));
KILN_OP(And_or, (x & y) | z);
KILN_OP(Or3, x | y | z);
KILN_OP(Bfi, (x & y) | (~x & z));
KILN_OP(Lshlrev, y << (x & 31));
KILN_OP(Lshrrev, y >> (x & 31));
KILN_OP(Ashrrev, s(y) >> (x & 31));
KILN_OP(Lshl_or, (x << (y & 31)) | z);
KILN_OP(Alignbit, (static_cast<u64>(x) << 32 | y) >> (z & 31));
KILN_OP(Alignbyte, (static_cast<u64>(x) << 32 | y) >> (8 * (z & 3)));
KILN_OP(Bfe_u, (z & 31) == 0 ? 0 : (x >> (y & 31)) & (0xffffffffu >> (32 - (z & 31))));
KILN_OP(Bfe_i, (z & 31) == 0 ? 0 : s(x >> (y & 31) << (32 - (z & 31))) >> (32 - (z & 31)));
KILN_OP(Bfm, ((1u << (x & 31)) - 1) << (y & 31));
KILN_OP(Add, x + y);
KILN_OP(Sub, x - y);
KILN_OP(Subrev, y - x);
// Saturating.
KILN_OP(Add_sat, x + y < x ? ~0u : x + y);
KILN_OP(Sub_sat, x < y ? 0 : x - y);
KILN_OP(Subrev_sat, y < x ? 0 : y - x);
KILN_INLINE u32 saturate(i64 x) {
    return x > 0x7fffffff ? 0x7fffffffu : x < -i64{0x80000000} ? 0x80000000u : static_cast<u32>(x);
}
KILN_OP(Add_sat_i, saturate(i64{s(x)} + s(y)));
KILN_OP(Sub_sat_i, saturate(i64{s(x)} - s(y)));
KILN_OP(Mul_lo, x* y);
KILN_OP(Mul_hi_u, static_cast<u64>(x) * y >> 32);
KILN_OP(Mul_hi_i, static_cast<i64>(s(x)) * s(y) >> 32);
KILN_OP(Mul_u24, u24(x) * u24(y));
KILN_OP(Mul_i24, static_cast<u32>(i24(x)) * static_cast<u32>(i24(y)));
KILN_OP(Mul_hi_u24, static_cast<u64>(u24(x)) * u24(y) >> 32);
KILN_OP(Mul_hi_i24, static_cast<i64>(i24(x)) * i24(y) >> 32);
KILN_OP(Mad_u24, u24(x) * u24(y) + z);
KILN_OP(Mad_i24, static_cast<u32>(i24(x)) * static_cast<u32>(i24(y)) + z);
KILN_OP(Min_u, lesser(x, y));
KILN_OP(Max_u, greater(x, y));
KILN_OP(Min_i, lesser(s(x), s(y)));
KILN_OP(Max_i, greater(s(x), s(y)));
KILN_OP(Min3_u, lesser(lesser(x, y), z));
KILN_OP(Max3_u, greater(greater(x, y), z));
KILN_OP(Min3_i, lesser(lesser(s(x), s(y)), s(z)));
KILN_OP(Max3_i, greater(greater(s(x), s(y)), s(z)));
KILN_OP(Med3_u, greater(lesser(x, y), lesser(greater(x, y), z)));
KILN_OP(Med3_i, greater(lesser(s(x), s(y)), lesser(greater(s(x), s(y)), s(z))));
KILN_OP(Lshl_add, (x << (y & 31)) + z);
KILN_OP(Add_lshl, (x + y) << (z & 31));
KILN_OP(Add3, x + y + z);
KILN_OP(Xad, (x ^ y) + z);
KILN_OP(Bcnt, static_cast<u32>(__builtin_popcount(x)) + y);
KILN_OP(Ffbh_u, x == 0 ? ~0u : static_cast<u32>(__builtin_clz(x | 1)));
KILN_OP(Ffbh_i, x == 0 || x == ~0u ? ~0u : static_cast<u32>(__builtin_clz((s(x) < 0 ? ~x : x) | 1)));
KILN_OP(Ffbl, x == 0 ? ~0u : static_cast<u32>(__builtin_ctz(x | 0x80000000u)));
KILN_OP(Sad_u32, (x > y ? x - y : y - x) + z);

// Sixteen bits, the high half of the destination cleared.
KILN_OP(Add_u16, (x + y) & 0xffff);
KILN_OP(Sub_u16, (x - y) & 0xffff);
KILN_OP(Subrev_u16, (y - x) & 0xffff);
KILN_OP(Mul_lo_u16, ((x & 0xffff) * (y & 0xffff)) & 0xffff);
KILN_OP(Lshlrev_b16, ((y & 0xffff) << (x & 15)) & 0xffff);
KILN_OP(Lshrrev_b16, (y & 0xffff) >> (x & 15));
KILN_OP(Ashrrev_i16, (static_cast<std::int16_t>(y) >> (x & 15)) & 0xffff);
KILN_OP(Min_u16, lesser(x & 0xffff, y & 0xffff));
KILN_OP(Max_u16, greater(x & 0xffff, y & 0xffff));
KILN_OP(Min_i16, lesser(i32{static_cast<std::int16_t>(x)}, i32{static_cast<std::int16_t>(y)}) & 0xffff);
KILN_OP(Max_i16, greater(i32{static_cast<std::int16_t>(x)}, i32{static_cast<std::int16_t>(y)}) & 0xffff);
KILN_OP(Mad_u16, ((x & 0xffff) * (y & 0xffff) + z) & 0xffff);
KILN_OP(Mad_u32_u16, (x & 0xffff) * (y & 0xffff) + z);
KILN_OP(Mad_i32_i16, static_cast<u32>(static_cast<std::int16_t>(x) * static_cast<std::int16_t>(y)) + z);

KILN_INLINE u32 reverse_bits(u32 x) {
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(x);
}
KILN_OP(Bfrev, reverse_bits(x));

// Each selector byte picks a byte of x:y (y is bytes 0-3), a sign (8-11: of bytes 1, 3, 5, 7), 0 (12) or 0xff
// (13 up).
KILN_INLINE u32 permute_bytes(u32 x, u32 y, u32 selectors) {
    const u64 data = static_cast<u64>(x) << 32 | y;
    u32 result = 0;
    for (unsigned n = 0; n < 4; ++n) {
        const u32 selector = selectors >> (8 * n) & 0xff;
        u32 byte = static_cast<u32>(data >> (8 * (selector & 7))) & 0xff;
        const u32 sign = 0u - (static_cast<u32>(data >> (16 * (selector & 3) + 15)) & 1);
        byte = selector >= 8 ? sign & 0xff : byte;
        byte = selector == 12 ? 0 : byte;
        byte = selector > 12 ? 0xff : byte;
        result |= byte << (8 * n);
    }
    return result;
}
KILN_OP(Perm, permute_bytes(x, y, z));

// Lanes below this one whose bit in a 64-bit mask is set.
template <int Half>
void mbcnt(Wave& w, const Instruction& i) {
    alignas(64) u32 room[2][kLanes];
    u64 ok = kAllLanes;
    const u32* mask = fetch<1>(w, i.src[0], room[0], ok);
    const u32* add = fetch<1>(w, i.src[1], room[1], ok);
    const u64 exec = w.exec();
    if (exec & ~ok) [[unlikely]] {
        follow_undefined(w, i, exec & ~ok);
    }
    u32* d = w.rows[i.dst.index];
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        const u64 below = (u64{1} << lane) - 1;
        const u32 part = static_cast<u32>(Half ? below >> 32 : below);
        if (exec >> lane & 1) {
            d[lane] = static_cast<u32>(__builtin_popcount(mask[lane] & part)) + add[lane];
        }
    }
    finish(w, i.dst.index, exec, ok);
}

// Result bit = table[4*x + 2*y + z], bit by bit; the table is the instruction's own.
void bitop3(Wave& w, const Instruction& i) {
    alignas(64) u32 room[3][kLanes];
    u64 ok = kAllLanes;
    const u32* x = fetch<1>(w, i.src[0], room[0], ok);
    const u32* y = fetch<1>(w, i.src[1], room[1], ok);
    const u32* z = fetch<1>(w, i.src[2], room[2], ok);
    const u64 exec = w.exec();
    if (exec & ~ok) [[unlikely]] {
        follow_undefined(w, i, exec & ~ok);
    }
    u32 term[8];
    for (unsigned n = 0; n < 8; ++n) {
        term[n] = 0u - (static_cast<u32>(i.offset) >> n & 1);
    }
    const u32* m = w.lanes_of_exec();
    u32* d = w.rows[i.dst.index];
#pragma GCC ivdep
    for (unsigned lane = 0; lane < kLanes; ++lane) {
        u32 value = 0;
        for (unsigned n = 0; n < 8; ++n) {
            value |= (n & 4 ? x[lane] : ~x[lane]) & (n & 2 ? y[lane] : ~y[lane]) &
                     (n & 1 ? z[lane] : ~z[lane]) & term[n];
        }
        d[lane] = (value & m[lane]) | (d[lane] & ~m[lane]);
    }
    finish(w, i.dst.index, exec, ok);
}

template <class Op, int Sources>
constexpr Opcode op(std::string_view name, std::string_view form, std::uint32_t flags = 0) {
    return {name, form, lanes32<Op, Sources>, Category::valu, flags, nullptr, 0, 0};
}
// One whose result bits each depend on one bit of each source, but for the operands in `exact`.
template <class Op, int Sources>
constexpr Opcode bit_op(std::string_view name, std::string_view form, std::uint8_t exact = 0,
                        std::uint32_t flags = 0) {
    return {name, form, lanes32<Op, Sources>, Category::valu, flags, Op::apply, exact, 0};
}

constexpr Opcode kOpcodes[] = {
    bit_op<Mov, 1>("v_mov_b32", "v:u"),
    bit_op<Mov, 1>("v_accvgpr_read_b32", "v:u", 0, kNoDpp),
    bit_op<Mov, 1>("v_accvgpr_write_b32", "v:u", 0, kNoDpp),
    bit_op<Mov, 1>("v_accvgpr_mov_b32", "v:u", 0, kNoDpp),
    bit_op<Not, 1>("v_not_b32", "v:u"),
    bit_op<And, 2>("v_and_b32", "v:uu"),
    bit_op<Or, 2>("v_or_b32", "v:uu"),
    bit_op<Xor, 2>("v_xor_b32", "v:uu"),
    bit_op<Xnor, 2>("v_xnor_b32", "v:uu"),
    bit_op<And_or, 3>("v_and_or_b32", "v:uuu"),
    bit_op<Or3, 3>("v_or3_b32", "v:uuu"),
    bit_op<Bfi, 3>("v_bfi_b32", "v:uuu"),
    bit_op<Lshlrev, 2>("v_lshlrev_b32", "v:uu", 1),
    bit_op<Lshrrev, 2>("v_lshrrev_b32", "v:uu", 1),
    bit_op<Ashrrev, 2>("v_ashrrev_i32", "v:uu", 1),
    bit_op<Lshl_or, 3>("v_lshl_or_b32", "v:uuu", 2),
    bit_op<Alignbit, 3>("v_alignbit_b32", "v:uuu", 4),
    bit_op<Alignbyte, 3>("v_alignbyte_b32", "v:uuu", 4),
    bit_op<Bfe_u, 3>("v_bfe_u32", "v:uuu", 6),
    bit_op<Bfe_i, 3>("v_bfe_i32", "v:uuu", 6),
    bit_op<Bfrev, 1>("v_bfrev_b32", "v:u"),
    bit_op<Perm, 3>("v_perm_b32", "v:uuu", 4),
    op<Bfm, 2>("v_bfm_b32", "v:uu"),
    op<Add, 2>("v_add_u32", "v:uu", kIntClamp),
    op<Sub, 2>("v_sub_u32", "v:uu", kIntClamp),
    op<Subrev, 2>("v_subrev_u32", "v:uu", kIntClamp),
    op<Add, 2>("v_add_i32", "v:uu", kIntClamp),
    op<Sub, 2>("v_sub_i32", "v:uu", kIntClamp),
    op<Add_sat, 2>("v_add_u32 clamp", "v:uu"),
    op<Sub_sat, 2>("v_sub_u32 clamp", "v:uu"),
    op<Subrev_sat, 2>("v_subrev_u32 clamp", "v:uu"),
    op<Add_sat_i, 2>("v_add_i32 clamp", "v:uu"),
    op<Sub_sat_i, 2>("v_sub_i32 clamp", "v:uu"),
    op<Mul_lo, 2>("v_mul_lo_u32", "v:uu"),
    op<Mul_hi_u, 2>("v_mul_hi_u32", "v:uu"),
    op<Mul_hi_i, 2>("v_mul_hi_i32", "v:uu"),
    op<Mul_u24, 2>("v_mul_u32_u24", "v:uu"),
    op<Mul_i24, 2>("v_mul_i32_i24", "v:uu"),
    op<Mul_hi_u24, 2>("v_mul_hi_u32_u24", "v:uu"),
    op<Mul_hi_i24, 2>("v_mul_hi_i32_i24", "v:uu"),
    op<Mad_u24, 3>("v_mad_u32_u24", "v:uuu"),
    op<Mad_i24, 3>("v_mad_i32_i24", "v:uuu"),
    op<Min_u, 2>("v_min_u32", "v:uu"),
    op<Max_u, 2>("v_max_u32", "v:uu"),
    op<Min_i, 2>("v_min_i32", "v:uu"),
    op<Max_i, 2>("v_max_i32", "v:uu"),
    op<Min3_u, 3>("v_min3_u32", "v:uuu"),
    op<Max3_u, 3>("v_max3_u32", "v:uuu"),
    op<Min3_i, 3>("v_min3_i32", "v:uuu"),
    op<Max3_i, 3>("v_max3_i32", "v:uuu"),
    op<Med3_u, 3>("v_med3_u32", "v:uuu"),
    op<Med3_i, 3>("v_med3_i32", "v:uuu"),
    op<Lshl_add, 3>("v_lshl_add_u32", "v:uuu"),
    op<Add_lshl, 3>("v_add_lshl_u32", "v:uuu"),
    op<Add3, 3>("v_add3_u32", "v:uuu"),
    op<Xad, 3>("v_xad_u32", "v:uuu"),
    op<Bcnt, 2>("v_bcnt_u32_b32", "v:uu"),
    op<Ffbh_u, 1>("v_ffbh_u32", "v:u"),
    op<Ffbh_i, 1>("v_ffbh_i32", "v:u"),
    op<Ffbl, 1>("v_ffbl_b32", "v:u"),
    op<Sad_u32, 3>("v_sad_u32", "v:uuu"),
    op<Add_u16, 2>("v_add_u16", "v:ii"),
    op<Sub_u16, 2>("v_sub_u16", "v:ii"),
    op<Subrev_u16, 2>("v_subrev_u16", "v:ii"),
    op<Mul_lo_u16, 2>("v_mul_lo_u16", "v:ii"),
    op<Lshlrev_b16, 2>("v_lshlrev_b16", "v:ii"),
    op<Lshrrev_b16, 2>("v_lshrrev_b16", "v:ii"),
    op<Ashrrev_i16, 2>("v_ashrrev_i16", "v:ii"),
    op<Min_u16, 2>("v_min_u16", "v:ii"),
    op<Max_u16, 2>("v_max_u16", "v:ii"),
    op<Min_i16, 2>("v_min_i16", "v:ii"),
    op<Max_i16, 2>("v_max_i16", "v:ii"),
    op<Mad_u16, 3>("v_mad_legacy_u16", "v:iii"),
    op<Mad_u32_u16, 3>("v_mad_u32_u16", "v:iiu"),
    op<Mad_i32_i16, 3>("v_mad_i32_i16", "v:iiu"),
    {"v_mbcnt_lo_u32_b32", "v:uu", mbcnt<0>, Category::valu, 0, nullptr, 0, 0},
    {"v_mbcnt_hi_u32_b32", "v:uu", mbcnt<1>, Category::valu, 0, nullptr, 0, 0},
    {"v_bitop3_b32", "v:uuu", bitop3, Category::valu, kNoDpp | kBitTable, nullptr, 0, 0},
};

}  // namespace

std::span<const Opcode> integer_opcodes() {
    return kOpcodes;
}

}  // namespace kiln::sim::KILN_SIM_LEVEL
