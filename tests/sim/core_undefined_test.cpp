// What nothing wrote: followed through what can not matter, an error where it comes to matter.
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "core_support.hpp"
#include "runtime/sim/wave_run.hpp"

namespace kiln::sim_test {
namespace {

using sim::WaveState;

// A wave that may store to and load from 64 dwords; v[10:11] is each lane's address in it.
struct Stage {
    sim::Memory memory{1 << 20};
    std::uint32_t* words = nullptr;
    WaveState state;

    Stage() {
        words = static_cast<std::uint32_t*>(*memory.allocate(256));
        std::memset(words, 0, 256);
        sim::Lanes low{}, high{};
        for (unsigned lane = 0; lane < 64; ++lane) {
            const auto address = reinterpret_cast<std::uint64_t>(words + lane);
            low[lane] = static_cast<std::uint32_t>(address);
            high[lane] = static_cast<std::uint32_t>(address >> 32);
        }
        state.set_v(10, low);
        state.set_v(11, high);
    }
    Result<WaveState> run(std::string_view text) const { return sim::run_wave(text, state, &memory); }
    std::string error(std::string_view text) const {
        const auto after = run(text);
        REQUIRE_FALSE(after.has_value());
        return after.error().message;
    }
    WaveState after(std::string_view text) const {
        auto done = run(text);
        REQUIRE_MESSAGE(done.has_value(), (done ? std::string{} : done.error().message));
        return std::move(*done);
    }
};

TEST_CASE("undefined: stored, it is an error that names the register and lane") {
    const Stage stage;
    const std::string message = stage.error("global_store_dword v[10:11], v5, off");
    CHECK(contains(message, "'global_store_dword v[10:11], v5, off' at offset 0"));
    CHECK(contains(message, "v5 was never written"));
    CHECK(contains(message, "lane 0"));
}

TEST_CASE("undefined: the error names the instruction that first read it") {
    const Stage stage;
    const std::string message = stage.error(
        "v_mov_b32_e32 v1, 1\nv_add_u32_e32 v2, v1, v77\nv_mul_lo_u32 v3, v2, v1\nglobal_store_dword "
        "v[10:11], v3, off");
    CHECK(contains(message, "at offset 12"));
    CHECK(contains(message, "it depends on v77"));
    CHECK(contains(message, "'v_add_u32_e32 v2, v1, v77' at offset 4"));
}

TEST_CASE("undefined: only in lanes that were switched off when it was written") {
    Stage stage;
    stage.state.exec = 0xffff;
    stage.after("v_mov_b32_e32 v1, 1\nglobal_store_dword v[10:11], v1, off");
    const std::string message =
        stage.error("v_mov_b32_e32 v1, 1\ns_mov_b64 exec, -1\nglobal_store_dword v[10:11], v1, off");
    CHECK(contains(message, "lane 16"));
}

TEST_CASE("undefined: an address, a branch, EXEC, M0, a jump, a descriptor") {
    const Stage stage;
    CHECK(contains(stage.error("global_load_dword v0, v[20:21], off"), "the address"));
    CHECK(contains(stage.error("v_mov_b32_e32 v1, 1\nds_write_b32 v9, v1"), "the LDS address"));
    CHECK(contains(stage.error("s_load_dword s0, s[20:21], 0x0"), "s20 was never written"));
    CHECK(contains(stage.error("s_cbranch_scc1 0"), "SCC"));
    CHECK(contains(stage.error("s_cmp_eq_u32 s3, 0\ns_cbranch_scc0 0"), "'s_cmp_eq_u32 s3, 0' at offset 0"));
    CHECK(contains(stage.error("s_cbranch_vccz 0"), "VCC"));
    CHECK(contains(stage.error("s_mov_b64 exec, s[2:3]"), "EXEC"));
    CHECK(contains(stage.error("s_and_saveexec_b64 s[0:1], s[2:3]"), "EXEC"));
    CHECK(contains(stage.error("s_setpc_b64 s[2:3]"), "address to jump to"));
    CHECK(contains(stage.error("v_mov_b32_e32 v1, 0\nbuffer_load_dword v0, v1, s[4:7], 0 offen"),
                   "buffer descriptor"));
    CHECK(contains(stage.error("v_mov_b32_e32 v1, 0\nv_readlane_b32 s0, v1, s9"), "number of a lane"));
    CHECK(contains(stage.error("v_readfirstlane_b32 s0, v9\ns_cmp_eq_u32 s0, 0\ns_cbranch_scc0 0"), "v9"));
    CHECK(contains(stage.error("v_cmp_eq_u32_e32 vcc, 0, v9\ns_and_saveexec_b64 s[0:1], vcc"), "v9"));
}

TEST_CASE("undefined: halves and bytes are followed on their own") {
    Stage stage;
    stage.state.set_v(1, 0x3f800000);
    stage.state.set_v(2, 0x40000000);
    // The usual way to fill a register: low half over what was never written, then the high half.
    auto after = stage.after(
        "v_cvt_pk_fp8_f32 v0, v1, v2\nv_cvt_pk_fp8_f32 v0, v2, v1 op_sel:[0,0,1]\n"
        "global_store_dword v[10:11], v0, off");
    CHECK(after.v(0)[5] == 0x38404038);
    CHECK(contains(stage.error("v_cvt_pk_fp8_f32 v0, v1, v2\nglobal_store_dword v[10:11], v0, off"), "v0"));
    stage.after("v_cvt_pk_fp8_f32 v0, v1, v2\nglobal_store_short v[10:11], v0, off");
    stage.after(
        "v_cvt_pk_fp8_f32 v0, v1, v2\nv_and_b32_e32 v3, 0xffff, v0\nglobal_store_dword v[10:11], v3, off");
    stage.after(
        "v_cvt_pk_fp8_f32 v0, v1, v2\nv_lshlrev_b32_e32 v3, 16, v0\nglobal_store_dword v[10:11], v3, off");
    stage.after("v_cvt_pk_fp8_f32 v0, v1, v2\nv_bfe_u32 v3, v0, 8, 8\nglobal_store_dword v[10:11], v3, off");
    stage.after(
        "v_cvt_pk_fp8_f32 v0, v1, v2\ns_mov_b32 s0, 0x01000100\nv_perm_b32 v3, v0, v0, s0\n"
        "global_store_dword v[10:11], v3, off");
    CHECK(contains(stage.error("v_cvt_pk_fp8_f32 v0, v1, v2\nv_lshrrev_b32_e32 v3, 8, v0\n"
                               "global_store_dword v[10:11], v3, off"),
                   "'v_cvt_pk_fp8_f32") == false);
    stage.after(
        "global_load_short_d16 v0, v[10:11], off\nglobal_load_short_d16_hi v0, v[10:11], off\n"
        "global_store_dword v[10:11], v0, off");
    stage.error("global_load_short_d16 v0, v[10:11], off\nglobal_store_dword v[10:11], v0, off");
    stage.after(
        "v_mov_b32_sdwa v0, v1 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1\n"
        "global_store_short_d16_hi v[10:11], v0, off");
    stage.error(
        "v_mov_b32_sdwa v0, v1 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1\n"
        "global_store_dword v[10:11], v0, off");
}

TEST_CASE("undefined: the high half of an addend does not reach the low half of the sum") {
    Stage stage;
    stage.state.set_v(1, 3);
    stage.state.set_v(2, 5);
    stage.state.set_v(4, 7);  // v5 is not written
    const auto after =
        stage.after("v_mad_u64_u32 v[6:7], s[0:1], v1, v2, v[4:5]\nglobal_store_dword v[10:11], v6, off");
    CHECK(after.v(6)[0] == 22);
    CHECK(contains(
        stage.error("v_mad_u64_u32 v[6:7], s[0:1], v1, v2, v[4:5]\nglobal_store_dword v[10:11], v7, off"),
        "v5"));
}

TEST_CASE("undefined: only the chosen side of a selection counts") {
    Stage stage;
    stage.state.set_v(1, 3);
    stage.state.set_s64(2, 0xffff0000ffff0000);
    stage.state.exec = 0xffff0000ffff0000;
    stage.after("v_cndmask_b32_e64 v0, v9, v1, s[2:3]\nglobal_store_dword v[10:11], v0, off");
    CHECK(contains(stage.error("v_cndmask_b32_e64 v0, v1, v9, s[2:3]\nglobal_store_dword v[10:11], v0, off"),
                   "lane 16"));
}

TEST_CASE("undefined: DPP and permutations carry it along") {
    Stage stage;
    stage.state.exec = 0xfffffffffffffff0;
    // Lanes 0 to 3 of v1 stay unwritten; row_shr:4 moves them to lanes 4 to 7.
    const std::string text =
        "v_mov_b32_e32 v1, 1\ns_mov_b64 exec, -1\nv_mov_b32_dpp v0, v1 row_shr:4 row_mask:0xf bank_mask:0xf "
        "bound_ctrl:1\n";
    CHECK(stage.after(text).vgpr_undefined.at(0) == 0xf0);
    CHECK(contains(stage.error(text + "global_store_dword v[10:11], v0, off"), "lane 4"));
    const auto swapped = stage.after(
        "v_mov_b32_e32 v1, 1\ns_mov_b64 exec, -1\nv_mov_b32_e32 v0, 2\n"
        "v_permlane32_swap_b32_e32 v0, v1");
    CHECK(swapped.vgpr_undefined.at(0) == std::uint64_t{0xf} << 32);
}

TEST_CASE("undefined: a matrix product spoils rows and columns, no more") {
    Stage stage;
    for (unsigned n = 0; n < 8; ++n) {
        stage.state.set_v(20 + n, 0x38383838);
    }
    // A and B from v[20:27]; lane 18 of one register of B is not written: column 2.
    const std::string fill = "s_not_b64 exec, s[0:1]\nv_mov_b32_e32 v33, v21\ns_mov_b64 exec, -1\n";
    stage.state.set_s64(0, std::uint64_t{1} << 18);
    std::string copy;
    for (const int n : {0, 2, 3, 4, 5, 6, 7}) {
        copy += "v_mov_b32_e32 v" + std::to_string(32 + n) + ", v20\n";
    }
    const std::uint64_t column2 = 0x0004000400040004;
    auto after = stage.after(copy + fill + "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[20:27], v[32:39], 0");
    for (unsigned n = 0; n < 4; ++n) {
        CHECK(after.vgpr_undefined.at(n) == column2);
        CHECK(after.v(n)[0] == 0x43000000);  // 128 products of 1 and 1
    }
    // As A it is row 2: register 2 of the lanes 0 to 15.
    after = stage.after(copy + fill + "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[32:39], v[20:27], 0");
    CHECK(after.vgpr_undefined.size() >= 1);
    CHECK(after.vgpr_undefined.count(0) == 0);
    CHECK(after.vgpr_undefined.at(2) == 0xffff);
}

TEST_CASE("undefined: scalars are followed bit by bit") {
    Stage stage;
    stage.state.set_s64(4, 0x00000000ffffffff);
    // Clang keeps loop masks in registers that it never initialises where they can not matter.
    const auto after = stage.after(
        "s_andn2_b64 s[0:1], s[0:1], exec\ns_and_b64 s[2:3], s[4:5], exec\n"
        "s_or_b64 s[0:1], s[0:1], s[2:3]\ns_and_saveexec_b64 s[6:7], s[0:1]");
    CHECK(after.exec == 0x00000000ffffffff);
    CHECK(
        contains(stage.error("s_or_b64 s[0:1], s[0:1], s[4:5]\ns_and_saveexec_b64 s[6:7], s[0:1]"), "EXEC"));
    stage.after("s_or_b32 s0, s1, -1\ns_cbranch_scc1 0");
    stage.error("s_or_b32 s0, s1, 0\ns_cbranch_scc1 0");
    CHECK(stage.after("s_mul_i32 s0, s1, 0").sgprs.count(0) == 0);
}

TEST_CASE("undefined: LDS bytes") {
    Stage stage;
    stage.state.lds_unwritten = 1024;
    stage.state.set_v(1, 0x11223344);
    sim::Lanes offset{};
    for (unsigned lane = 0; lane < 64; ++lane) {
        offset[lane] = 8 * lane;
    }
    stage.state.set_v(0, offset);
    const std::string message = stage.error(
        "ds_write_b32 v0, v1\nds_read_b64 v[2:3], v0\n"
        "global_store_dword v[10:11], v3, off");
    CHECK(contains(message, "LDS bytes"));
    CHECK(contains(message, "'ds_read_b64 v[2:3], v0' at offset 4"));
    const auto after =
        stage.after("ds_write_b32 v0, v1\nds_read_b64 v[2:3], v0\nglobal_store_dword v[10:11], v2, off");
    CHECK(after.v(2)[9] == 0x11223344);
    stage.after(
        "ds_write_b16 v0, v1\nds_write_b8 v0, v1 offset:2\nds_write_b8 v0, v1 offset:3\nds_read_b32 v2, v0\n"
        "global_store_dword v[10:11], v2, off");
    stage.error(
        "ds_write_b16 v0, v1\nds_write_b8 v0, v1 offset:2\nds_read_b32 v2, v0\n"
        "global_store_dword v[10:11], v2, off");
    // Undefined data may be stored to LDS, and come back as they were.
    stage.error("ds_write_b32 v0, v9\nds_read_b32 v2, v0\nglobal_store_dword v[10:11], v2, off");
    CHECK(contains(stage.error("ds_add_u32 v0, v1"), "never written"));
}

}  // namespace
}  // namespace kiln::sim_test
