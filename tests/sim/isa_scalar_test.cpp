// Scalar instructions: results and what each does to SCC.
#include "tests/sim/isa_support.hpp"

using namespace kiln::sim;
using namespace kiln::sim::test;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

namespace {

enum Scc { kept, zero, one };

struct Case {
    const char* text;  // writes s0 (and s1) from s[2:3] and s[4:5]
    u64 x, y;
    u64 result;
    Scc scc;
};

void check(const Case& c, bool wide) {
    CAPTURE(c.text);
    CAPTURE(c.x);
    CAPTURE(c.y);
    for (const bool before : {false, true}) {
        WaveState state;
        state.scc = before;
        state.set_s64(0, 0x1111111122222222);
        state.set_s64(2, c.x);
        state.set_s64(4, c.y);
        const WaveState after = run(c.text, state);
        CHECK((wide ? after.s64(0) : after.s(0)) == c.result);
        CHECK(*after.scc == (c.scc == kept ? before : c.scc == one));
    }
}

constexpr u64 kMinusOne = 0xffffffff;

const Case kNarrow[] = {
    {"s_mov_b32 s0, s2", 7, 0, 7, kept},
    {"s_mov_b32 s0, 0xdeadbeef", 0, 0, 0xdeadbeef, kept},
    {"s_movk_i32 s0, 0x8000", 0, 0, 0xffff8000, kept},
    {"s_add_u32 s0, s2, s4", 1, 2, 3, zero},
    {"s_add_u32 s0, s2, s4", kMinusOne, 1, 0, one},
    {"s_sub_u32 s0, s2, s4", 3, 3, 0, zero},
    {"s_sub_u32 s0, s2, s4", 3, 4, kMinusOne, one},
    {"s_add_i32 s0, s2, s4", 0x7fffffff, 1, 0x80000000, one},
    {"s_add_i32 s0, s2, s4", kMinusOne, 1, 0, zero},
    {"s_sub_i32 s0, s2, s4", 0x80000000, 1, 0x7fffffff, one},
    {"s_sub_i32 s0, s2, s4", 0, 1, kMinusOne, zero},
    {"s_mul_i32 s0, s2, s4", 0x10001, 0x10001, 0x00020001, kept},
    {"s_mul_hi_u32 s0, s2, s4", kMinusOne, kMinusOne, 0xfffffffe, kept},
    {"s_mul_hi_i32 s0, s2, s4", kMinusOne, kMinusOne, 0, kept},
    {"s_and_b32 s0, s2, s4", 0xc, 0xa, 0x8, one},
    {"s_and_b32 s0, s2, s4", 0xc, 0x3, 0, zero},
    {"s_or_b32 s0, s2, s4", 0xc, 0xa, 0xe, one},
    {"s_or_b32 s0, s2, s4", 0, 0, 0, zero},
    {"s_xor_b32 s0, s2, s4", 0xc, 0xc, 0, zero},
    {"s_xor_b32 s0, s2, s4", 0xc, 0xa, 0x6, one},
    {"s_andn2_b32 s0, s2, s4", 0xc, 0xa, 0x4, one},
    {"s_orn2_b32 s0, s2, s4", 0xc, 0xfffffff0, 0xf, one},
    {"s_nand_b32 s0, s2, s4", kMinusOne, kMinusOne, 0, zero},
    {"s_nor_b32 s0, s2, s4", 0, 0, kMinusOne, one},
    {"s_xnor_b32 s0, s2, s4", 5, 5, kMinusOne, one},
    {"s_not_b32 s0, s2", kMinusOne, 0, 0, zero},
    {"s_not_b32 s0, s2", 1, 0, 0xfffffffe, one},
    {"s_lshl_b32 s0, s2, s4", 1, 35, 8, one},
    {"s_lshl_b32 s0, s2, s4", 0x80000000, 1, 0, zero},
    {"s_lshr_b32 s0, s2, s4", 0x80000000, 31, 1, one},
    {"s_ashr_i32 s0, s2, s4", 0x80000000, 31, kMinusOne, one},
    {"s_ashr_i32 s0, s2, s4", 1, 1, 0, zero},
    {"s_bfe_u32 s0, s2, s4", 0xabcd1234, 0x00080010, 0xcd, one},
    {"s_bfe_u32 s0, s2, 0x100008", 0xabcd1234, 0, 0xcd12, one},
    {"s_bfe_u32 s0, s2, s4", 0xabcd1234, 0x00000010, 0, zero},
    {"s_bfe_i32 s0, s2, s4", 0xabcd1234, 0x00080010, 0xffffffcd, one},
    {"s_bfm_b32 s0, s2, s4", 4, 8, 0xf00, kept},
    {"s_min_i32 s0, s2, s4", kMinusOne, 1, kMinusOne, one},
    {"s_min_u32 s0, s2, s4", kMinusOne, 1, 1, zero},
    {"s_max_i32 s0, s2, s4", kMinusOne, 1, 1, zero},
    {"s_max_u32 s0, s2, s4", kMinusOne, 1, kMinusOne, one},
    {"s_abs_i32 s0, s2", 0xfffffffb, 0, 5, one},
    {"s_abs_i32 s0, s2", 0, 0, 0, zero},
    {"s_abs_i32 s0, s2", 0x80000000, 0, 0x80000000, one},
    {"s_sext_i32_i8 s0, s2", 0x80, 0, 0xffffff80, kept},
    {"s_sext_i32_i16 s0, s2", 0x7fff, 0, 0x7fff, kept},
    {"s_brev_b32 s0, s2", 1, 0, 0x80000000, kept},
    {"s_bcnt1_i32_b32 s0, s2", 0xf0f0, 0, 8, one},
    {"s_bcnt1_i32_b64 s0, s[2:3]", 0xff000000000000ff, 0, 16, one},
    {"s_bcnt0_i32_b32 s0, s2", kMinusOne, 0, 0, zero},
    {"s_ff1_i32_b32 s0, s2", 0x100, 0, 8, kept},
    {"s_ff1_i32_b32 s0, s2", 0, 0, kMinusOne, kept},
    {"s_ff1_i32_b64 s0, s[2:3]", u64{1} << 40, 0, 40, kept},
    {"s_flbit_i32_b32 s0, s2", 0x00010000, 0, 15, kept},
    {"s_flbit_i32_b32 s0, s2", 0, 0, kMinusOne, kept},
    {"s_flbit_i32_b64 s0, s[2:3]", 1, 0, 63, kept},
    {"s_flbit_i32 s0, s2", 0xffff0000, 0, 16, kept},
    {"s_flbit_i32 s0, s2", kMinusOne, 0, kMinusOne, kept},
    {"s_lshl1_add_u32 s0, s2, s4", 3, 1, 7, zero},
    {"s_lshl2_add_u32 s0, s2, s4", 3, 1, 13, zero},
    {"s_lshl3_add_u32 s0, s2, s4", 3, 1, 25, zero},
    {"s_lshl4_add_u32 s0, s2, s4", 3, 1, 49, zero},
    {"s_lshl1_add_u32 s0, s2, s4", 0x80000000, 5, 5, one},
    {"s_pack_ll_b32_b16 s0, s2, s4", 0x11112222, 0x33334444, 0x44442222, kept},
    {"s_pack_lh_b32_b16 s0, s2, s4", 0x11112222, 0x33334444, 0x33332222, kept},
    {"s_pack_hh_b32_b16 s0, s2, s4", 0x11112222, 0x33334444, 0x33331111, kept},
    {"s_bitset1_b32 s0, s2", 0, 0, 0x22222223, kept},
    {"s_bitset0_b32 s0, s2", 1, 0, 0x22222220, kept},
    {"s_absdiff_i32 s0, s2, s4", 3, 10, 7, one},
    {"s_absdiff_i32 s0, s2, s4", kMinusOne, 1, 2, one},
    {"s_absdiff_i32 s0, s2, s4", 5, 5, 0, zero},
    {"s_bcnt0_i32_b64 s0, s[2:3]", 0xff, 0, 56, one},
    {"s_ff0_i32_b32 s0, s2", 0xff, 0, 8, kept},
    {"s_ff0_i32_b64 s0, s[2:3]", ~u64{0}, 0, kMinusOne, kept},
    {"s_flbit_i32_i64 s0, s[2:3]", 0xffffff0000000000, 0, 24, kept},
    {"s_addk_i32 s0, 0x7fff", 0, 0, 0x2222a221, zero},
    {"s_addk_i32 s0, 0xfffe", 0, 0, 0x22222220, zero},
    {"s_mulk_i32 s0, 0x2", 0, 0, 0x44444444, kept},
};

const Case kWide[] = {
    {"s_mov_b64 s[0:1], s[2:3]", 0x123456789abcdef0, 0, 0x123456789abcdef0, kept},
    {"s_mov_b64 s[0:1], -1", 0, 0, ~u64{0}, kept},
    {"s_and_b64 s[0:1], s[2:3], s[4:5]", 0xff00000000, 0xf0000000ff, 0xf000000000, one},
    {"s_and_b64 s[0:1], s[2:3], s[4:5]", 0xff00000000, 0xff, 0, zero},
    {"s_or_b64 s[0:1], s[2:3], s[4:5]", 0xff00000000, 1, 0xff00000001, one},
    {"s_xor_b64 s[0:1], s[2:3], s[4:5]", 5, 5, 0, zero},
    {"s_andn2_b64 s[0:1], s[2:3], s[4:5]", ~u64{0}, 1, ~u64{1}, one},
    {"s_not_b64 s[0:1], s[2:3]", ~u64{0}, 0, 0, zero},
    {"s_lshl_b64 s[0:1], s[2:3], s4", 1, 40, u64{1} << 40, one},
    {"s_lshl_b64 s[0:1], s[2:3], s4", 1, 64, 1, one},
    {"s_lshr_b64 s[0:1], s[2:3], s4", u64{1} << 63, 63, 1, one},
    {"s_ashr_i64 s[0:1], s[2:3], s4", u64{1} << 63, 63, ~u64{0}, one},
    {"s_bfe_u64 s[0:1], s[2:3], s4", 0xfedcba9876543210, 0x00140020, 0xcba98, one},
    {"s_bfe_i64 s[0:1], s[2:3], s4", 0xfedcba9876543210, 0x00140020, 0xfffffffffffcba98, one},
    {"s_bfm_b64 s[0:1], s2, s4", 8, 32, 0xff00000000, kept},
    {"s_nand_b64 s[0:1], s[2:3], s[4:5]", ~u64{0}, ~u64{0}, 0, zero},
    {"s_nor_b64 s[0:1], s[2:3], s[4:5]", 1, 2, ~u64{3}, one},
    {"s_xnor_b64 s[0:1], s[2:3], s[4:5]", 1, 2, ~u64{3}, one},
    {"s_orn2_b64 s[0:1], s[2:3], s[4:5]", 1, ~u64{6}, 7, one},
    {"s_bitset1_b64 s[0:1], s2", 40, 0, 0x1111111122222222 | u64{1} << 40, kept},
    {"s_bitset0_b64 s[0:1], s2", 1, 0, 0x1111111122222220, kept},
    {"s_brev_b64 s[0:1], s[2:3]", 1, 0, u64{1} << 63, kept},
};

}  // namespace

TEST_CASE("isa: scalar results and SCC") {
    for (const Case& c : kNarrow)
        check(c, false);
    for (const Case& c : kWide)
        check(c, true);
}

TEST_CASE("isa: scalar carries chain through SCC") {
    WaveState state;
    state.set_s64(2, 0x00000001ffffffff);
    state.set_s64(4, 0x0000000200000001);
    const WaveState sum = run("s_add_u32 s0, s2, s4\ns_addc_u32 s1, s3, s5", state);
    CHECK(sum.s64(0) == 0x0000000400000000);
    CHECK_FALSE(*sum.scc);
    const WaveState difference = run("s_sub_u32 s0, s4, s2\ns_subb_u32 s1, s5, s3", state);
    CHECK(difference.s64(0) == 0x0000000000000002);
    CHECK_FALSE(*difference.scc);
    const WaveState borrow = run("s_sub_u32 s0, s2, s4\ns_subb_u32 s1, s3, s5", state);
    CHECK(borrow.s64(0) == 0xfffffffffffffffe);
    CHECK(*borrow.scc);
}

TEST_CASE("isa: scalar comparisons") {
    const struct {
        const char* text;
        u32 x, y;
        bool truth;
    } cases[] = {{"s_cmp_eq_i32 s2, s4", 1, 1, true},
                 {"s_cmp_lg_u32 s2, s4", 1, 1, false},
                 {"s_cmp_lt_i32 s2, s4", 0xffffffff, 1, true},
                 {"s_cmp_lt_u32 s2, s4", 0xffffffff, 1, false},
                 {"s_cmp_gt_i32 s2, s4", 1, 0xffffffff, true},
                 {"s_cmp_ge_u32 s2, s4", 1, 1, true},
                 {"s_cmp_le_i32 s2, s4", 2, 1, false},
                 {"s_cmp_gt_u32 s2, 0xff", 256, 0, true},
                 {"s_cmp_eq_u32 s2, s4", 2, 2, true},
                 {"s_cmp_ge_i32 s2, s4", 0xffffffff, 0, false},
                 {"s_cmp_le_u32 s2, s4", 0xffffffff, 0, false},
                 {"s_cmp_lg_i32 s2, s4", 1, 2, true},
                 // The immediate is sign-extended for _i32 and zero-extended for _u32.
                 {"s_cmpk_eq_i32 s2, 0x8000", 0xffff8000, 0, true},
                 {"s_cmpk_lg_u32 s2, 0x8000", 0xffff8000, 0, true},
                 {"s_cmpk_gt_i32 s2, 0xfffe", 0xffffffff, 0, true},
                 {"s_cmpk_ge_i32 s2, 0x1", 0xffffffff, 0, false},
                 {"s_cmpk_lt_i32 s2, 0x1", 0xffffffff, 0, true},
                 {"s_cmpk_le_i32 s2, 0xffff", 0xffffffff, 0, true},
                 {"s_cmpk_gt_u32 s2, 0xffff", 0x10000, 0, true},
                 {"s_cmpk_ge_u32 s2, 0xffff", 0xffff, 0, true},
                 {"s_cmpk_lt_u32 s2, 0xffff", 0xffffffff, 0, false},
                 {"s_cmpk_le_u32 s2, 0xffff", 0x10000, 0, false},
                 {"s_cmpk_lg_i32 s2, 0xffff", 0xffffffff, 0, false},
                 {"s_cmpk_eq_u32 s2, 0xffff", 0xffff, 0, true},
                 {"s_bitcmp1_b32 s2, s4", 0x10, 4, true},
                 {"s_bitcmp0_b32 s2, s4", 0x10, 4, false},
                 {"s_bitcmp1_b32 s2, s4", 0x10, 36, true}};
    for (const auto& c : cases) {
        CAPTURE(c.text);
        WaveState state;
        state.set_s(2, c.x);
        state.set_s(4, c.y);
        CHECK(*run(c.text, state).scc == c.truth);
    }
    WaveState state;
    state.set_s64(2, 0x100000000);
    state.set_s64(4, 0);
    CHECK_FALSE(*run("s_cmp_eq_u64 s[2:3], s[4:5]", state).scc);
    CHECK(*run("s_cmp_lg_u64 s[2:3], s[4:5]", state).scc);
    state.set_s(4, 32);
    CHECK(*run("s_bitcmp1_b64 s[2:3], s4", state).scc);
    CHECK_FALSE(*run("s_bitcmp0_b64 s[2:3], s4", state).scc);
}

TEST_CASE("isa: scalar selects and conditional moves read SCC") {
    for (const bool scc : {false, true}) {
        WaveState state;
        state.scc = scc;
        state.set_s64(0, 0);
        state.set_s64(2, 0x0000000a0000000b);
        state.set_s64(4, 0x0000000c0000000d);
        CHECK(run("s_cselect_b32 s0, s2, s4", state).s(0) == (scc ? 0xb : 0xd));
        CHECK(run("s_cselect_b64 s[0:1], s[2:3], s[4:5]", state).s64(0) ==
              (scc ? 0x0000000a0000000b : 0x0000000c0000000d));
        CHECK(run("s_cmov_b32 s0, s2", state).s(0) == (scc ? 0xb : 0));
        CHECK(run("s_cmov_b64 s[0:1], s[2:3]", state).s64(0) == (scc ? 0x0000000a0000000b : 0));
    }
}

TEST_CASE("isa: saving and narrowing EXEC") {
    WaveState state;
    state.exec = 0x00000000ffff00ff;
    state.set_s64(2, 0x0000000f0000ff0f);
    const struct {
        const char* text;
        u64 exec;
    } cases[] = {{"s_and_saveexec_b64 s[0:1], s[2:3]", 0x000000000000000f},
                 {"s_or_saveexec_b64 s[0:1], s[2:3]", 0x0000000fffffffff},
                 {"s_xor_saveexec_b64 s[0:1], s[2:3]", 0x0000000ffffffff0},
                 {"s_andn2_saveexec_b64 s[0:1], s[2:3]", 0x0000000f0000ff00},
                 {"s_andn1_saveexec_b64 s[0:1], s[2:3]", 0x00000000ffff00f0},
                 {"s_orn1_saveexec_b64 s[0:1], s[2:3]", 0xfffffff0ffff00ff},
                 {"s_orn2_saveexec_b64 s[0:1], s[2:3]", 0xffffffff0000ff0f},
                 {"s_nand_saveexec_b64 s[0:1], s[2:3]", 0xfffffffffffffff0},
                 {"s_nor_saveexec_b64 s[0:1], s[2:3]", 0xfffffff000000000},
                 {"s_xnor_saveexec_b64 s[0:1], s[2:3]", 0xfffffff00000000f}};
    for (const auto& c : cases) {
        CAPTURE(c.text);
        const WaveState after = run(c.text, state);
        CHECK(after.exec == c.exec);
        CHECK(after.s64(0) == state.exec);
        CHECK(*after.scc);
    }
    // The wrexec forms write the new EXEC.
    const WaveState both = run("s_andn1_wrexec_b64 s[0:1], s[2:3]", state);
    CHECK(both.exec == 0x00000000ffff00f0);
    CHECK(both.s64(0) == both.exec);
    const WaveState other = run("s_andn2_wrexec_b64 s[0:1], s[2:3]", state);
    CHECK(other.exec == 0x0000000f0000ff00);
    CHECK(other.s64(0) == other.exec);
    state.set_s64(2, u64{1} << 63);
    CHECK_FALSE(*run("s_and_saveexec_b64 s[0:1], s[2:3]", state).scc);
}

TEST_CASE("isa: branches follow SCC, VCC and EXEC") {
    // Taken skips the line that overwrites s0.
    const auto taken = [](const char* branch, WaveState state) {
        state.set_s(0, 1);
        return run(std::string(branch) + " 1\ns_mov_b32 s0, 2", state).s(0) == 1;
    };
    for (const bool condition : {false, true}) {
        WaveState state;
        state.scc = condition;
        state.vcc = condition ? 4 : 0;
        state.exec = condition ? 4 : 0;
        CHECK(taken("s_cbranch_scc1", state) == condition);
        CHECK(taken("s_cbranch_scc0", state) == !condition);
        CHECK(taken("s_cbranch_vccnz", state) == condition);
        CHECK(taken("s_cbranch_vccz", state) == !condition);
        CHECK(taken("s_cbranch_execnz", state) == condition);
        CHECK(taken("s_cbranch_execz", state) == !condition);
        CHECK(taken("s_branch", state));
    }
    // A loop: the branch goes back three lines, to the addition.
    WaveState state;
    state.set_s(0, 0);
    state.set_s(1, 0);
    const WaveState after =
        run("s_add_i32 s0, s0, 3\ns_add_i32 s1, s1, 1\ns_cmp_lt_u32 s1, 5\ns_cbranch_scc1 65532", state);
    CHECK(after.s(0) == 15);
}
