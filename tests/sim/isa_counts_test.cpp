// What an instruction is counted as: its class, cycles of the matrix unit and of LDS, lines of memory. The
// cases of LDS are worked out by hand from the rules in runtime/sim/lds_banks.hpp.
#include <cstdint>
#include <string>

#include "tests/sim/isa_support.hpp"

using namespace kiln::sim;
using namespace kiln::sim::test;

namespace {

using Counts = kiln::device::ExecutionCounts;

// Lane n at n * stride.
Lanes strided(std::uint32_t stride) {
    Lanes lanes{};
    for (unsigned lane = 0; lane < 64; ++lane)
        lanes[lane] = lane * stride;
    return lanes;
}

// v1 holds addresses, v[4:7] data.
Counts lds_counts(const std::string& text, const Lanes& addresses, std::uint64_t exec = ~std::uint64_t{0}) {
    WaveState state;
    state.exec = exec;
    state.lds.assign(32768, std::byte{1});
    state.set_v(1, addresses);
    for (unsigned n = 4; n < 8; ++n)
        state.set_v(n, 7);
    return run(text, state).counts;
}

void check_lds(const std::string& text, const Lanes& addresses, std::uint64_t phases, std::uint64_t conflicts,
               std::uint64_t exec = ~std::uint64_t{0}) {
    CAPTURE(text);
    CAPTURE(addresses[1] - addresses[0]);
    const Counts counts = lds_counts(text, addresses, exec);
    CHECK(counts.lds_accesses == 1);
    CHECK(counts.lds_cycles == phases + conflicts);
    CHECK(counts.lds_conflict_cycles == conflicts);
}

}  // namespace

TEST_CASE("LanesThatFallOnOneBankTakeTurns") {
    // Two phases of 32 lanes on 32 banks.
    for (const std::string text : {"ds_read_b32 v0, v1", "ds_write_b32 v1, v4"}) {
        check_lds(text, strided(4), 2, 0);
        check_lds(text, strided(8), 2, 2);       // each two lanes meet: one more cycle a phase
        check_lds(text, strided(128), 2, 62);    // all 32 of a phase meet
        check_lds(text, strided(132), 2, 0);     // a padded row
        check_lds(text, strided(128), 2, 1, 3);  // only lanes 0 and 1 are there
        check_lds(text, strided(128), 2, 0, 1);
        check_lds(text, strided(128), 2, 0, 0);
    }
    // Two phases of 32 lanes on 64 banks.
    check_lds("ds_read_b64 v[2:3], v1", strided(8), 2, 0);
    check_lds("ds_read_b64 v[2:3], v1", strided(16), 2, 2);
    check_lds("ds_read_b64 v[2:3], v1", strided(256), 2, 62);
    check_lds("ds_read_b64_tr_b16 v[2:3], v1", strided(16), 2, 2);
    // Four phases of 16 lanes on 32 banks.
    check_lds("ds_write_b64 v1, v[4:5]", strided(8), 4, 0);
    check_lds("ds_write_b64 v1, v[4:5]", strided(16), 4, 4);
    check_lds("ds_write_b64 v1, v[4:5]", strided(128), 4, 60);
    // Eight phases of 8 lanes on 32 banks.
    for (const std::string text : {"ds_read_b96 v[2:4], v1", "ds_write_b96 v1, v[4:6]"}) {
        check_lds(text, strided(12), 8, 0);
        check_lds(text, strided(16), 8, 0);
        check_lds(text, strided(64), 8, 8 * 3);  // lanes 0, 2, 4 and 6 meet, and so do the others
        check_lds(text, strided(128), 8, 56);
    }
    check_lds("ds_write_b128 v1, v[4:7]", strided(16), 8, 0);
    check_lds("ds_write_b128 v1, v[4:7]", strided(32), 8, 8);
    check_lds("ds_write_b128 v1, v[4:7]", strided(128), 8, 56);
    // Four phases of 16 lanes on 64 banks.
    check_lds("ds_read_b128 v[8:11], v1", strided(16), 4, 0);
    check_lds("ds_read_b128 v[8:11], v1", strided(32), 4, 4);
    check_lds("ds_read_b128 v[8:11], v1", strided(256), 4, 60);
    check_lds("ds_read_b128 v[8:11], v1 offset:16", strided(256), 4, 60);
}

TEST_CASE("LanesOfAWideReadMeetInTheMeasuredSets") {
    // Lanes of one set on slots of their own, whatever lanes beside them do.
    constexpr unsigned kFirst[16] = {0, 1, 2, 3, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 26, 27};
    constexpr unsigned kSecond[16] = {4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 28, 29, 30, 31};
    Lanes free{};
    for (unsigned n = 0; n < 16; ++n) {
        for (const unsigned half : {0u, 32u}) {
            free[half + kFirst[n]] = 16 * n + 1024 * half / 32;
            free[half + kSecond[n]] = 16 * n + 256 + 1024 * half / 32;
        }
    }
    check_lds("ds_read_b128 v[8:11], v1", free, 4, 0);
    // Lane 20 where lane 0 is, 256 bytes on: one cycle more in the first phase. Lane 4 does not meet lane 0.
    Lanes meets = free;
    meets[20] = free[0] + 512;
    check_lds("ds_read_b128 v[8:11], v1", meets, 4, 1);
    meets = free;
    meets[4] = free[0] + 512;
    check_lds("ds_read_b128 v[8:11], v1", meets, 4, 0);
}

TEST_CASE("LanesThatReadTheSameWordShareIt") {
    const Lanes same = strided(0);
    check_lds("ds_read_b32 v0, v1", same, 2, 0);
    check_lds("ds_read_b64 v[2:3], v1", same, 2, 0);
    check_lds("ds_read_b96 v[2:4], v1", same, 8, 0);
    check_lds("ds_read_b128 v[8:11], v1", same, 4, 0);
    check_lds("ds_read_u8 v0, v1", strided(1), 2, 0);
    check_lds("ds_read_u16 v0, v1", strided(2), 2, 0);
    // Two words of one bank, each read by half of the lanes.
    Lanes two{};
    for (unsigned lane = 0; lane < 64; ++lane)
        two[lane] = lane % 2 * 1024;
    check_lds("ds_read_b32 v0, v1", two, 2, 2);
    check_lds("ds_read_b128 v[8:11], v1", two, 4, 4);
    // Who writes or updates it does so alone.
    check_lds("ds_write_b32 v1, v4", same, 2, 62);
    check_lds("ds_add_u32 v1, v4", same, 2, 62);
    check_lds("ds_write_b128 v1, v[4:7]", same, 8, 56);
}

TEST_CASE("InstructionsWithSeveralAccessesOrNoneAreCountedSo") {
    const Counts two = lds_counts("ds_read2_b32 v[2:3], v1 offset0:0 offset1:1", strided(8));
    CHECK(two.lds_accesses == 2);
    CHECK(two.lds_cycles == 8);
    CHECK(two.lds_conflict_cycles == 4);
    const Counts none = lds_counts("ds_bpermute_b32 v0, v1, v4", strided(4));
    CHECK(none.lds == 1);
    CHECK(none.lds_accesses == 0);
    CHECK(none.lds_cycles == 0);
}

TEST_CASE("MatrixInstructionsTakeTheCyclesOfTheirPasses") {
    WaveState state;
    for (unsigned n = 0; n < 64; ++n)
        state.set_v(n, 0);
    const auto cycles = [&](const std::string& text) { return run(text, state).counts.mfma_cycles; };
    CHECK(cycles("v_mfma_f32_16x16x32_bf16 v[0:3], v[4:7], v[8:11], 0") == 16);
    CHECK(cycles("v_mfma_f32_32x32x16_bf16 v[0:15], v[16:19], v[20:23], 0") == 32);
    const std::string small = "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], ",
                      large = "v_mfma_scale_f32_32x32x64_f8f6f4 v[0:15], ";
    CHECK(cycles(small + "v[16:23], v[24:31], 0, v40, v41 op_sel_hi:[0,0,0]") == 32);
    CHECK(cycles(small + "v[16:19], v[24:31], 0, v40, v41 op_sel_hi:[0,0,0] cbsz:4") == 32);
    CHECK(cycles(small + "v[16:19], v[24:27], 0, v40, v41 op_sel_hi:[0,0,0] cbsz:4 blgp:4") == 16);
    CHECK(cycles(small + "v[16:21], v[24:27], 0, v40, v41 op_sel_hi:[0,0,0] cbsz:2 blgp:4") == 16);
    CHECK(cycles(large + "v[16:23], v[24:31], 0, v40, v41 op_sel_hi:[0,0,0]") == 64);
    CHECK(cycles(large + "v[16:19], v[24:27], 0, v40, v41 op_sel_hi:[0,0,0] cbsz:4 blgp:4") == 32);
    CHECK(cycles(small + "v[16:19], v[24:27], 0, v40, v41 op_sel_hi:[0,0,0] cbsz:4 blgp:4\n" + small +
                 "v[16:19], v[24:27], 0, v40, v41 op_sel_hi:[0,0,0] cbsz:4 blgp:4") == 32);
}

TEST_CASE("ClassesAreCountedApart") {
    WaveState state;
    state.set_v(1, 0x3f800000);
    const Counts counts = run("v_exp_f32_e32 v2, v1\n"
                              "v_rcp_f16_e32 v3, v1\n"
                              "v_add_f32_e32 v4, v1, v1\n"
                              "s_mov_b32 s0, 1\n"
                              "s_cmp_eq_u32 s0, 1\n"
                              "s_cbranch_scc1 1\n"
                              "s_mov_b32 s0, 2\n"
                              "s_branch 0\n"
                              "s_waitcnt vmcnt(0)\n"
                              "s_nop 3\n",
                              state)
                              .counts;
    CHECK(counts.valu == 3);
    CHECK(counts.transcendental == 2);
    CHECK(counts.branches == 2);
    CHECK(counts.waits == 3);  // the end of the program too
    CHECK(counts.salu == 2 + 2 + 3);
    CHECK(counts.instructions == 10);
}

TEST_CASE("LinesAreCountedByAccessAndOnceForTheLaunch") {
    Memory memory(1 << 20);
    const auto allocated = memory.allocate(65536);
    REQUIRE(allocated.has_value());
    const auto base = reinterpret_cast<std::uint64_t>(*allocated);  // aligned to 256 bytes
    const auto counts = [&](const std::string& text, const Lanes& offsets,
                            std::uint64_t exec = ~std::uint64_t{0}) {
        WaveState state;
        state.exec = exec;
        state.set_s64(0, base);
        state.set_v(1, offsets);
        for (unsigned n = 4; n < 8; ++n)
            state.set_v(n, 7);
        return run(text, state, &memory).counts;
    };
    Counts c = counts("global_load_dword v0, v1, s[0:1]", strided(4));
    CHECK(c.global_line_requests == 2);
    CHECK(c.global_lines_read == 2);
    CHECK(c.die_lines_read == 2);
    CHECK(c.global_lines_written == 0);
    c = counts("global_load_dword v0, v1, s[0:1]\nglobal_load_dword v2, v1, s[0:1] offset:128", strided(4));
    CHECK(c.global_line_requests == 4);
    CHECK(c.global_lines_read == 3);
    c = counts("global_load_dwordx4 v[8:11], v1, s[0:1]", strided(128));
    CHECK(c.global_line_requests == 64);
    CHECK(c.global_lines_read == 64);
    // Lanes in turn on two lines; a lane whose bytes lie on two.
    Lanes turns{};
    for (unsigned lane = 0; lane < 64; ++lane)
        turns[lane] = lane % 2 * 1024;
    CHECK(counts("global_load_dword v0, v1, s[0:1]", turns).global_line_requests == 2);
    c = counts("global_load_dwordx4 v[8:11], v1, s[0:1] offset:120", strided(0), 1);
    CHECK(c.global_line_requests == 2);
    CHECK(c.global_lines_read == 2);
    c = counts("global_store_dwordx4 v1, v[4:7], s[0:1]", strided(16));
    CHECK(c.global_line_requests == 8);
    CHECK(c.global_lines_written == 8);
    CHECK(c.global_lines_read == 0);
    c = counts("global_atomic_add v1, v4, s[0:1]", strided(0));
    CHECK(c.global_line_requests == 1);
    CHECK(c.global_lines_read == 1);
    CHECK(c.global_lines_written == 1);
    c = counts("s_load_dwordx16 s[16:31], s[0:1], 0x60", strided(0));
    CHECK(c.global_line_requests == 0);
    CHECK(c.global_lines_read == 2);
}

TEST_CASE("LoadsStraightToLdsWriteItWithoutConflicts") {
    Memory memory(1 << 20);
    const auto allocated = memory.allocate(4096);
    REQUIRE(allocated.has_value());
    WaveState state;
    state.lds_unwritten = 4096;
    state.m0 = 1024;
    state.set_s64(0, reinterpret_cast<std::uint64_t>(*allocated));
    state.set_v(1, strided(16));
    const Counts wide = run("global_load_lds_dwordx4 v1, s[0:1]", state, &memory).counts;
    CHECK(wide.lds_accesses == 1);
    CHECK(wide.lds_cycles == 8);
    CHECK(wide.lds_conflict_cycles == 0);
    CHECK(wide.vmem == 1);
    CHECK(wide.global_line_requests == 8);
    const Counts narrow = run("global_load_lds_dword v1, s[0:1]", state, &memory).counts;
    CHECK(narrow.lds_cycles == 2);
    CHECK(narrow.lds_conflict_cycles == 0);
}
