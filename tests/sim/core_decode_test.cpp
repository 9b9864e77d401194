// What the decoder does not know must fail, and only when it is executed.
#include <doctest/doctest.h>

#include <string>

#include "core_support.hpp"
#include "runtime/sim/wave_run.hpp"

namespace kiln::sim_test {
namespace {

std::string error_of(std::string_view text) {
    sim::WaveState state;
    state.set_v(1, 1);
    state.set_v(2, 2);
    state.set_v(3, 3);
    state.set_s64(4, 0);
    const auto after = sim::run_wave(text, state);
    REQUIRE_FALSE(after.has_value());
    CHECK(after.error().code == ErrorCode::device_failed);
    return after.error().message;
}

TEST_CASE("decode: an unknown mnemonic is named with its place") {
    const std::string message = error_of("s_nop 0\nv_frobnicate_b32 v0, v1");
    CHECK(contains(message, "'v_frobnicate_b32 v0, v1' at offset 4"));
    CHECK(contains(message, "no mnemonic 'v_frobnicate_b32'"));
    CHECK(contains(message, "wave 0"));
}

TEST_CASE("decode: an unknown instruction that is not executed does no harm") {
    const auto after = sim::run_wave("s_branch 1\nv_frobnicate_b32 v0, v1\ns_mov_b32 s0, 7", {});
    REQUIRE(after.has_value());
    CHECK(after->s(0) == 7);
}

TEST_CASE("decode: nothing of the text is ignored") {
    CHECK(contains(error_of("v_mov_b32_e32 v0, v1 glow:1"), "modifier 'glow:1'"));
    CHECK(contains(error_of("v_and_b32_e64 v0, v1, v2 clamp"), "modifier 'clamp'"));
    CHECK(contains(error_of("v_add_f32_e64 v0, v1, v2 mul:3"), "output multiplier"));
    CHECK(contains(error_of("v_and_b32_e64 v0, -v1, v2"), "'-v1' can not be a source"));
    CHECK(contains(error_of("v_mov_b32_e32 v0, v1, v2"), "one operand too many"));
    CHECK(contains(error_of("v_add_u32_e32 v0, v1"), "a source is missing"));
    CHECK(contains(error_of("v_add_u32_e32 v[0:1], v1, v2"), "can not be a destination"));
    CHECK(contains(error_of("v_add_u32_e32 v0, v[1:2], v2"), "not 1 dwords wide"));
    CHECK(contains(error_of("v_add_u32_e32 v0, v1, 0.7"), "'0.7' is no operand"));
    CHECK(contains(error_of("v_mov_b32_dpp v0, v1 row_share:1 row_mask:0xf bank_mask:0xf"), "DPP pattern"));
    CHECK(contains(error_of("v_mov_b32_dpp v0, v1 quad_perm:[0,1,2,4] row_mask:0xf bank_mask:0xf"),
                   "quad_perm"));
    CHECK(contains(error_of("v_mov_b32_sdwa v0, v1 dst_sel:BYTE_9 dst_unused:UNUSED_PAD src0_sel:DWORD"),
                   "SDWA"));
    CHECK(contains(error_of("v_pk_mul_f32 v[0:1], v[2:3], 1.0"), "high half of a constant"));
    CHECK(contains(error_of("global_load_dword v0, v[2:3], off sc3"), "modifier 'sc3'"));
    CHECK(contains(error_of("global_load_dword v0, v[2:3], off lds"), "modifier 'lds'"));
    CHECK(contains(error_of("buffer_load_dword v0, v1, s[4:7], 0 idxen"), "'v1'"));
    CHECK(contains(error_of("ds_read_b32 v0, v1 gds"), "modifier 'gds'"));
    CHECK(contains(error_of("s_waitcnt vmcnt(0) nonsense(1)"), "nonsense"));
    CHECK(contains(error_of("v_mfma_f32_16x16x999_bf16 v[4:7], v[0:3], v[0:3], 0"), "no matrix instruction"));
    CHECK(contains(error_of("s_getreg_b32 s0, hwreg(HW_REG_TRAPSTS)"), "HW_REG_TRAPSTS"));
    CHECK(contains(error_of("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 5"), "MODE"));
    CHECK(contains(error_of("s_branch 100"), "no instruction starts"));
}

TEST_CASE("decode: constants have the type of their operand") {
    sim::WaveState state;
    state.set_v(2, 0);
    state.set_v(3, 0);
    const auto after = sim::run_wave(
        "v_mov_b32_e32 v0, 0.5\nv_mov_b32_e32 v1, -4.0\nv_mov_b32_e32 v4, 0.15915494\nv_mov_b32_e32 v5, -16\n"
        "v_add_f64 v[6:7], v[2:3], 1.0\nv_add_f64 v[8:9], v[2:3], 0x40240000\ns_mov_b64 s[0:1], -1\n"
        "s_mov_b64 s[2:3], 0xffffff00\ns_mov_b32 s4, lit(0x10)\nv_lshlrev_b64 v[10:11], 1, -2",
        state);
    REQUIRE_MESSAGE(after.has_value(), (after ? std::string{} : after.error().message));
    CHECK(after->v(0)[0] == 0x3f000000);
    CHECK(after->v(1)[0] == 0xc0800000);
    CHECK(after->v(4)[0] == 0x3e22f983);
    CHECK(after->v(5)[0] == 0xfffffff0);
    CHECK(after->v(6)[0] == 0);
    CHECK(after->v(7)[0] == 0x3ff00000);
    CHECK(after->v(9)[0] == 0x40240000);
    CHECK(after->s64(0) == ~std::uint64_t{0});
    CHECK(after->s64(2) == 0xffffff00);
    CHECK(after->s(4) == 16);
    CHECK(after->v(10)[63] == 0xfffffffc);
    CHECK(after->v(11)[63] == 0xffffffff);
}

TEST_CASE("decode: a listing serves only the code object it was made from") {
    const auto built = compile_hip("extern \"C\" __global__ void k(int* a) { a[threadIdx.x] = 1; }");
    const auto other = compile_hip("extern \"C\" __global__ void k(int* a) { a[threadIdx.x] = 2; }");
    REQUIRE(sim::Program::load(built.code_object, built.listing).has_value());
    const auto mixed = sim::Program::load(built.code_object, other.listing);
    REQUIRE_FALSE(mixed.has_value());
    CHECK(mixed.error().code == ErrorCode::load_failed);
    CHECK(contains(mixed.error().message, "another code object"));
    const auto cut = sim::Program::load(ByteView(built.code_object).first(100), built.listing);
    REQUIRE_FALSE(cut.has_value());
    CHECK(cut.error().code == ErrorCode::load_failed);
    const auto garbage = sim::Program::load(built.code_object, "kiln-listing 7\n");
    REQUIRE_FALSE(garbage.has_value());
    CHECK(garbage.error().code == ErrorCode::load_failed);
}

}  // namespace
}  // namespace kiln::sim_test
