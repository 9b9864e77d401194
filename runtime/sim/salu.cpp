// Scalar arithmetic, logic and comparison, on 32 and 64 bits.
#include <bit>
#include <type_traits>

#include "runtime/sim/fault.hpp"
#include "runtime/sim/scalar.hpp"
#include "runtime/sim/table.hpp"

namespace kiln::sim {

Origin scalar_origin(const Wave& w, const Instruction& i) {
    for (const Operand& o : i.src) {
        for (unsigned n = 0; o.kind == Operand::sgpr && n < o.dwords; ++n) {
            if (w.sgprs_defined[o.index + n] != ~0u) {
                return origin_of_sgpr(w, i, o.index + n);
            }
        }
    }
    return w.scc_defined ? Origin{} : w.scc_origin;
}

namespace {

using u64 = std::uint64_t;
using i64 = std::int64_t;
using u32 = std::uint32_t;
using i32 = std::int32_t;

constexpr u64 kAll = ~u64{0};

// How undefined bits travel: exactly through moves and logic; otherwise one makes the whole result undefined.
enum class Follow { whole, move, logic };
// What becomes of SCC.
enum class Scc { kept, nonzero, by_operation };

i32 s(u64 x) {
    return static_cast<i32>(x);
}
u32 u(u64 x) {
    return static_cast<u32>(x);
}

// Bits of the result that are the same whatever the undefined bits are. Logic: a result bit depends on one
// bit a source.
template <class Operation>
u64 logic_defined(const ScalarValue& x, const ScalarValue& y) {
    u64 same = kAll, first = 0;
    bool scc = false;
    for (unsigned pattern = 0; pattern < 4; ++pattern) {
        const u64 a = (x.value & x.defined) | (pattern & 1 ? ~x.defined : 0);
        const u64 b = (y.value & y.defined) | (pattern & 2 ? ~y.defined : 0);
        const u64 result = Operation{}(a, b, scc);
        first = pattern == 0 ? result : first;
        same &= ~(first ^ result);
    }
    return same;
}

template <class Operation, Follow F, Scc S, bool ReadsScc = false>
void alu(Wave& w, const Instruction& i) {
    const ScalarValue x = read_scalar(w, i.src[0]);
    const ScalarValue y = read_scalar(w, i.src[1]);
    bool scc = w.scc;
    const u64 width = i.dst.dwords == 2 ? kAll : 0xffffffffu;
    const u64 value = Operation{}(x.value, y.value, scc) & width;
    u64 defined = kAll;
    bool scc_defined = true;
    if ((~x.defined | ~y.defined) != 0 || (ReadsScc && !w.scc_defined)) [[unlikely]] {
        defined = F == Follow::logic ? logic_defined<Operation>(x, y) : F == Follow::move ? x.defined : 0;
        // A bit that is known to be one makes the result nonzero, whatever the others are.
        scc_defined = S == Scc::nonzero && (((value & defined) != 0) || ((~defined & width) == 0));
    }
    write_scalar(w, i, i.dst, value, defined);
    if constexpr (S == Scc::nonzero) {
        write_scc(w, i, value != 0, scc_defined);
    } else if constexpr (S == Scc::by_operation) {
        write_scc(w, i, scc, scc_defined);
    }
}

// SCC only.
template <class Operation>
void compare(Wave& w, const Instruction& i) {
    const ScalarValue x = read_scalar(w, i.src[0]);
    const ScalarValue y = read_scalar(w, i.src[1]);
    write_scc(w, i, Operation{}(x.value, y.value), (~x.defined | ~y.defined) == 0);
}

// The first source where SCC is set, else the second.
void cselect(Wave& w, const Instruction& i) {
    const ScalarValue v = read_scalar(w, i.src[w.scc ? 0 : 1]);
    write_scalar(w, i, i.dst, v.value, w.scc_defined ? v.defined : 0);
}
void cmov(Wave& w, const Instruction& i) {
    if (!w.scc_defined) {
        write_scalar(w, i, i.dst, 0, 0);
    } else if (w.scc) {
        const ScalarValue v = read_scalar(w, i.src[0]);
        write_scalar(w, i, i.dst, v.value, v.defined);
    }
}

// dst = EXEC, EXEC = Operation{}(source, EXEC); with `Write` dst = the new EXEC.
template <class Operation, bool Write>
void save_exec(Wave& w, const Instruction& i) {
    const ScalarValue x = read_scalar(w, i.src[0]);
    const ScalarValue exec{w.exec(), kAll};
    bool scc = false;
    const u64 value = Operation{}(x.value, exec.value, scc);
    if (~x.defined != 0 && ~logic_defined<Operation>(x, exec) != 0) [[unlikely]] {
        fault_undefined(w, i, "EXEC", -1, scalar_origin(w, i));
    }
    w.set_sgpr64(i.dst.index, Write ? value : exec.value);
    w.set_exec(value);
    write_scc(w, i, value != 0, true);
}

// sN = sN op immediate.
template <class Operation, bool WritesScc>
void with_immediate(Wave& w, const Instruction& i) {
    const ScalarValue x = read_scalar(w, i.dst);
    bool scc = w.scc;
    const u64 value = Operation{}(
        x.value, static_cast<u64>(static_cast<i64>(static_cast<std::int16_t>(i.src[0].value))), scc);
    const bool ok = u(~x.defined) == 0;
    const Origin origin = ok ? Origin{} : origin_of_sgpr(w, i, i.dst.index);
    w.sgprs[i.dst.index] = u(value);
    w.sgprs_defined[i.dst.index] = ok ? ~0u : 0;
    w.sgpr_origins[i.dst.index] = origin;
    if constexpr (WritesScc) {
        w.scc = scc;
        w.scc_defined = ok;
        w.scc_origin = origin;
    }
}

// One bit of the destination.
template <bool Value>
void bitset(Wave& w, const Instruction& i) {
    const u64 bit =
        u64{1} << (require_scalar(w, i, i.src[0], "the number of a bit") & (i.dst.dwords == 2 ? 63 : 31));
    const ScalarValue old = read_scalar(w, i.dst);
    write_scalar(w, i, i.dst, Value ? old.value | bit : old.value & ~bit, old.defined | bit);
}

bool add_overflows(i32 x, i32 y) {
    i32 sum = 0;
    return __builtin_add_overflow(x, y, &sum);
}
bool sub_overflows(i32 x, i32 y) {
    i32 difference = 0;
    return __builtin_sub_overflow(x, y, &difference);
}
u64 reverse32(u64 x) {
    u32 r = 0;
    for (unsigned n = 0; n < 32; ++n) {
        r |= (u(x) >> n & 1) << (31 - n);
    }
    return r;
}
u64 extract32(u64 x, u64 field, bool sign) {
    const unsigned offset = field & 31, width = field >> 16 & 0x7f;
    if (width == 0) {
        return 0;
    }
    const u32 part = u(x) >> offset;
    if (width >= 32) {
        return sign ? u(s(x) >> offset) : part;
    }
    const unsigned left = 32 - width;
    return sign ? u(s(part << left) >> left) : part << left >> left;
}
u64 extract64(u64 x, u64 field, bool sign) {
    const unsigned offset = field & 63, width = field >> 16 & 0x7f;
    if (width == 0) {
        return 0;
    }
    const u64 part = sign ? static_cast<u64>(static_cast<i64>(x) >> offset) : x >> offset;
    if (width >= 64) {
        return part;
    }
    const unsigned left = 64 - width;
    return sign ? static_cast<u64>(static_cast<i64>(part << left) >> left) : part << left >> left;
}
// Leading bits equal to the sign, -1 when all are.
u64 sign_bits(i64 x, unsigned width) {
    const u64 flipped = static_cast<u64>(x < 0 ? ~x : x);
    return flipped == 0 ? ~u64{0}
                        : static_cast<u64>(std::countl_zero(flipped) - static_cast<int>(64 - width));
}

#define KILN_S [](u64 x, [[maybe_unused]] u64 y, [[maybe_unused]] bool& scc) -> u64
#define KILN_C [](u64 x, [[maybe_unused]] u64 y) -> bool

template <Scc S = Scc::by_operation, Follow F = Follow::whole, bool ReadsScc = false, class Operation>
constexpr Opcode op(Operation, std::string_view name, std::string_view form) {
    return {name, form, alu<Operation, F, S, ReadsScc>, Category::salu, 0, nullptr, 0, 0};
}
template <class Operation>
constexpr Opcode cmp(Operation, std::string_view name, std::string_view form) {
    return {name, form, compare<Operation>, Category::salu, 0, nullptr, 0, 0};
}
constexpr Opcode raw(std::string_view name, std::string_view form, Handler handler) {
    return {name, form, handler, Category::salu, 0, nullptr, 0, 0};
}

constexpr auto kMov = KILN_S {
    return x;
};
constexpr auto kNot = KILN_S {
    return ~x;
};
constexpr auto kAnd = KILN_S {
    return x & y;
};
constexpr auto kOr = KILN_S {
    return x | y;
};
constexpr auto kXor = KILN_S {
    return x ^ y;
};
constexpr auto kAndn2 = KILN_S {
    return x & ~y;
};
constexpr auto kAndn1 = KILN_S {
    return ~x & y;
};
constexpr auto kOrn2 = KILN_S {
    return x | ~y;
};
constexpr auto kOrn1 = KILN_S {
    return ~x | y;
};
constexpr auto kNand = KILN_S {
    return ~(x & y);
};
constexpr auto kNor = KILN_S {
    return ~(x | y);
};
constexpr auto kXnor = KILN_S {
    return ~(x ^ y);
};
constexpr auto kAddImmediate = KILN_S {
    scc = add_overflows(s(x), s(y));
    return u(x) + u(y);
};
constexpr auto kMulImmediate = KILN_S {
    return u(x) * u(y);
};

#define KILN_LOGIC(name, operation)                                       \
    op<Scc::nonzero, Follow::logic>(operation, "s_" name "_b32", "s:uu"), \
        op<Scc::nonzero, Follow::logic>(operation, "s_" name "_b64", "d:UU")
#define KILN_SAVE(name, operation) \
    raw("s_" name "_saveexec_b64", "d:U", save_exec<std::remove_const_t<decltype(operation)>, false>)
#define KILN_COMPARE(name, condition)                                                                      \
    cmp(                                                                                                   \
        KILN_C { return s(x) condition s(y); }, "s_cmp_" name "_i32", ":uu"),                              \
        cmp(                                                                                               \
            KILN_C { return u(x) condition u(y); }, "s_cmp_" name "_u32", ":uu"),                          \
        cmp(                                                                                               \
            KILN_C { return s(x) condition static_cast<std::int16_t>(y); }, "s_cmpk_" name "_i32", ":uk"), \
        cmp(                                                                                               \
            KILN_C { return u(x) condition static_cast<std::uint16_t>(y); }, "s_cmpk_" name "_u32", ":uk")
#define KILN_LSHL_ADD(n)                             \
    op<>(                                            \
        KILN_S {                                     \
            const u64 sum = (u64{u(x)} << n) + u(y); \
            scc = sum >> 32 != 0;                    \
            return sum;                              \
        },                                           \
        "s_lshl" #n "_add_u32", "s:uu")

const Opcode kOpcodes[] = {
    op<Scc::kept, Follow::move>(kMov, "s_mov_b32", "s:u"),
    op<Scc::kept, Follow::move>(kMov, "s_mov_b64", "d:U"),
    op<Scc::kept>(
        KILN_S { return u(static_cast<std::int16_t>(x)); }, "s_movk_i32", "s:k"),
    raw("s_cmov_b32", "s:u", cmov),
    raw("s_cmov_b64", "d:U", cmov),
    raw("s_cselect_b32", "s:uu", cselect),
    raw("s_cselect_b64", "d:UU", cselect),
    op<Scc::nonzero, Follow::logic>(kNot, "s_not_b32", "s:u"),
    op<Scc::nonzero, Follow::logic>(kNot, "s_not_b64", "d:U"),
    KILN_LOGIC("and", kAnd),
    KILN_LOGIC("or", kOr),
    KILN_LOGIC("xor", kXor),
    KILN_LOGIC("andn2", kAndn2),
    KILN_LOGIC("orn2", kOrn2),
    KILN_LOGIC("nand", kNand),
    KILN_LOGIC("nor", kNor),
    KILN_LOGIC("xnor", kXnor),
    KILN_SAVE("and", kAnd),
    KILN_SAVE("or", kOr),
    KILN_SAVE("xor", kXor),
    KILN_SAVE("andn2", kAndn2),
    KILN_SAVE("andn1", kAndn1),
    KILN_SAVE("orn2", kOrn2),
    KILN_SAVE("orn1", kOrn1),
    KILN_SAVE("nand", kNand),
    KILN_SAVE("nor", kNor),
    KILN_SAVE("xnor", kXnor),
    raw("s_andn1_wrexec_b64", "d:U", save_exec<std::remove_const_t<decltype(kAndn1)>, true>),
    raw("s_andn2_wrexec_b64", "d:U", save_exec<std::remove_const_t<decltype(kAndn2)>, true>),
    op<Scc::nonzero>(
        KILN_S { return u(x) << (y & 31); }, "s_lshl_b32", "s:uu"),
    op<Scc::nonzero>(
        KILN_S { return x << (y & 63); }, "s_lshl_b64", "d:Uu"),
    op<Scc::nonzero>(
        KILN_S { return u(x) >> (y & 31); }, "s_lshr_b32", "s:uu"),
    op<Scc::nonzero>(
        KILN_S { return x >> (y & 63); }, "s_lshr_b64", "d:Uu"),
    op<Scc::nonzero>(
        KILN_S { return u(s(x) >> (y & 31)); }, "s_ashr_i32", "s:uu"),
    op<Scc::nonzero>(
        KILN_S { return static_cast<u64>(static_cast<i64>(x) >> (y & 63)); }, "s_ashr_i64", "d:Iu"),
    op<>(
        KILN_S {
            scc = (u64{u(x)} + u(y)) >> 32 != 0;
            return x + y;
        },
        "s_add_u32", "s:uu"),
    op<>(kAddImmediate, "s_add_i32", "s:uu"),
    op<>(
        KILN_S {
            scc = u(x) < u(y);
            return x - y;
        },
        "s_sub_u32", "s:uu"),
    op<>(
        KILN_S {
            scc = sub_overflows(s(x), s(y));
            return x - y;
        },
        "s_sub_i32", "s:uu"),
    op<Scc::by_operation, Follow::whole, true>(
        KILN_S {
            const u64 sum = u64{u(x)} + u(y) + scc;
            scc = sum >> 32 != 0;
            return sum;
        },
        "s_addc_u32", "s:uu"),
    op<Scc::by_operation, Follow::whole, true>(
        KILN_S {
            const u64 difference = u64{u(x)} - u(y) - scc;
            scc = difference >> 32 != 0;
            return difference;
        },
        "s_subb_u32", "s:uu"),
    KILN_LSHL_ADD(1),
    KILN_LSHL_ADD(2),
    KILN_LSHL_ADD(3),
    KILN_LSHL_ADD(4),
    raw("s_addk_i32", "s:k", with_immediate<std::remove_const_t<decltype(kAddImmediate)>, true>),
    raw("s_mulk_i32", "s:k", with_immediate<std::remove_const_t<decltype(kMulImmediate)>, false>),
    op<Scc::kept>(
        KILN_S { return u(x) * u(y); }, "s_mul_i32", "s:uu"),
    op<Scc::kept>(
        KILN_S { return u64{u(x)} * u(y) >> 32; }, "s_mul_hi_u32", "s:uu"),
    op<Scc::kept>(
        KILN_S { return static_cast<u64>(i64{s(x)} * s(y) >> 32); }, "s_mul_hi_i32", "s:uu"),
    op<>(
        KILN_S {
            scc = s(x) < s(y);
            return scc ? x : y;
        },
        "s_min_i32", "s:uu"),
    op<>(
        KILN_S {
            scc = u(x) < u(y);
            return scc ? x : y;
        },
        "s_min_u32", "s:uu"),
    op<>(
        KILN_S {
            scc = s(x) > s(y);
            return scc ? x : y;
        },
        "s_max_i32", "s:uu"),
    op<>(
        KILN_S {
            scc = u(x) > u(y);
            return scc ? x : y;
        },
        "s_max_u32", "s:uu"),
    op<Scc::nonzero>(
        KILN_S { return s(x) < 0 ? 0 - x : x; }, "s_abs_i32", "s:u"),
    op<Scc::nonzero>(
        KILN_S { return s(u(x) - u(y)) < 0 ? y - x : x - y; }, "s_absdiff_i32", "s:uu"),
    op<Scc::nonzero>(
        KILN_S { return extract32(x, y, false); }, "s_bfe_u32", "s:uu"),
    op<Scc::nonzero>(
        KILN_S { return extract32(x, y, true); }, "s_bfe_i32", "s:uu"),
    op<Scc::nonzero>(
        KILN_S { return extract64(x, y, false); }, "s_bfe_u64", "d:Uu"),
    op<Scc::nonzero>(
        KILN_S { return extract64(x, y, true); }, "s_bfe_i64", "d:Iu"),
    op<Scc::kept>(
        KILN_S { return ((u64{1} << (x & 31)) - 1) << (y & 31); }, "s_bfm_b32", "s:uu"),
    op<Scc::kept>(
        KILN_S { return ((u64{1} << (x & 63)) - 1) << (y & 63); }, "s_bfm_b64", "d:uu"),
    op<Scc::kept>(
        KILN_S { return reverse32(x); }, "s_brev_b32", "s:u"),
    op<Scc::kept>(
        KILN_S { return reverse32(x) << 32 | reverse32(x >> 32); }, "s_brev_b64", "d:U"),
    op<Scc::nonzero>(
        KILN_S { return static_cast<u64>(std::popcount(u(x))); }, "s_bcnt1_i32_b32", "s:u"),
    op<Scc::nonzero>(
        KILN_S { return static_cast<u64>(std::popcount(x)); }, "s_bcnt1_i32_b64", "s:U"),
    op<Scc::nonzero>(
        KILN_S { return static_cast<u64>(32 - std::popcount(u(x))); }, "s_bcnt0_i32_b32", "s:u"),
    op<Scc::nonzero>(
        KILN_S { return static_cast<u64>(64 - std::popcount(x)); }, "s_bcnt0_i32_b64", "s:U"),
    op<Scc::kept>(
        KILN_S { return u(x) == 0 ? kAll : static_cast<u64>(std::countr_zero(u(x))); }, "s_ff1_i32_b32",
        "s:u"),
    op<Scc::kept>(
        KILN_S { return x == 0 ? kAll : static_cast<u64>(std::countr_zero(x)); }, "s_ff1_i32_b64", "s:U"),
    op<Scc::kept>(
        KILN_S { return u(~x) == 0 ? kAll : static_cast<u64>(std::countr_one(u(x))); }, "s_ff0_i32_b32",
        "s:u"),
    op<Scc::kept>(
        KILN_S { return ~x == 0 ? kAll : static_cast<u64>(std::countr_one(x)); }, "s_ff0_i32_b64", "s:U"),
    op<Scc::kept>(
        KILN_S { return u(x) == 0 ? kAll : static_cast<u64>(std::countl_zero(u(x))); }, "s_flbit_i32_b32",
        "s:u"),
    op<Scc::kept>(
        KILN_S { return x == 0 ? kAll : static_cast<u64>(std::countl_zero(x)); }, "s_flbit_i32_b64", "s:U"),
    op<Scc::kept>(
        KILN_S { return sign_bits(s(x), 32); }, "s_flbit_i32", "s:u"),
    op<Scc::kept>(
        KILN_S { return sign_bits(static_cast<i64>(x), 64); }, "s_flbit_i32_i64", "s:I"),
    op<Scc::kept>(
        KILN_S { return u(static_cast<std::int8_t>(x)); }, "s_sext_i32_i8", "s:u"),
    op<Scc::kept>(
        KILN_S { return u(static_cast<std::int16_t>(x)); }, "s_sext_i32_i16", "s:u"),
    op<Scc::kept>(
        KILN_S { return (x & 0xffff) | (y & 0xffff) << 16; }, "s_pack_ll_b32_b16", "s:uu"),
    op<Scc::kept>(
        KILN_S { return (x & 0xffff) | (y & 0xffff0000u); }, "s_pack_lh_b32_b16", "s:uu"),
    op<Scc::kept>(
        KILN_S { return (x >> 16 & 0xffff) | (y & 0xffff0000u); }, "s_pack_hh_b32_b16", "s:uu"),
    raw("s_bitset0_b32", "s:u", bitset<false>),
    raw("s_bitset1_b32", "s:u", bitset<true>),
    raw("s_bitset0_b64", "d:u", bitset<false>),
    raw("s_bitset1_b64", "d:u", bitset<true>),
    KILN_COMPARE("eq", ==),
    KILN_COMPARE("lg", !=),
    KILN_COMPARE("lt", <),
    KILN_COMPARE("le", <=),
    KILN_COMPARE("gt", >),
    KILN_COMPARE("ge", >=),
    cmp(
        KILN_C { return x == y; }, "s_cmp_eq_u64", ":UU"),
    cmp(
        KILN_C { return x != y; }, "s_cmp_lg_u64", ":UU"),
    cmp(
        KILN_C { return (x >> (y & 31) & 1) == 0; }, "s_bitcmp0_b32", ":uu"),
    cmp(
        KILN_C { return (x >> (y & 31) & 1) != 0; }, "s_bitcmp1_b32", ":uu"),
    cmp(
        KILN_C { return (x >> (y & 63) & 1) == 0; }, "s_bitcmp0_b64", ":Uu"),
    cmp(
        KILN_C { return (x >> (y & 63) & 1) != 0; }, "s_bitcmp1_b64", ":Uu"),
};

}  // namespace

std::span<const Opcode> scalar_opcodes() {
    return kOpcodes;
}

}  // namespace kiln::sim
