// Instructions that move numbers between lanes: DPP, swaps, reads and writes of one lane, permutes through
// LDS.
#include "tests/sim/isa_support.hpp"

using namespace kiln::sim;
using namespace kiln::sim::test;
using u32 = std::uint32_t;

namespace {

constexpr int kNone = -1;

// v1 holds 100 + lane, v0 holds lane; `source` says which lane each lane reads, or kNone.
template <class Source>
void check_dpp(const std::string& control, Source source, bool zero_when_none = false,
               std::uint64_t exec = ~std::uint64_t{0}, unsigned row_mask = 0xf, unsigned bank_mask = 0xf) {
    CAPTURE(control);
    WaveState state;
    state.exec = exec;
    state.set_v(0, lane_numbers());
    state.set_v(1, lane_numbers(100));
    const WaveState after = run("v_mov_b32_dpp v0, v1 " + control, state);
    for (int lane = 0; lane < 64; ++lane) {
        CAPTURE(lane);
        int from = source(lane);
        if (from != kNone && !(exec >> from & 1))
            from = kNone;
        u32 expected = static_cast<u32>(lane);
        const bool written =
            (exec >> lane & 1) && (row_mask >> lane / 16 & 1) && (bank_mask >> lane % 16 / 4 & 1);
        if (written && from != kNone)
            expected = static_cast<u32>(100 + from);
        else if (written && zero_when_none)
            expected = 0;
        CHECK(after.v(0)[static_cast<unsigned>(lane)] == expected);
    }
}

}  // namespace

TEST_CASE("isa: DPP patterns") {
    const std::string masks = " row_mask:0xf bank_mask:0xf";
    check_dpp("quad_perm:[3,1,0,2]" + masks, [](int lane) {
        const int pick[4] = {3, 1, 0, 2};
        return lane / 4 * 4 + pick[lane % 4];
    });
    check_dpp("row_shl:1" + masks, [](int lane) { return lane % 16 + 1 < 16 ? lane + 1 : kNone; });
    check_dpp("row_shl:15" + masks, [](int lane) { return lane % 16 + 15 < 16 ? lane + 15 : kNone; });
    check_dpp("row_shr:1" + masks, [](int lane) { return lane % 16 >= 1 ? lane - 1 : kNone; });
    check_dpp("row_shr:8" + masks, [](int lane) { return lane % 16 >= 8 ? lane - 8 : kNone; });
    check_dpp("row_ror:4" + masks, [](int lane) { return lane / 16 * 16 + (lane % 16 + 12) % 16; });
    check_dpp("row_mirror" + masks, [](int lane) { return lane / 16 * 16 + 15 - lane % 16; });
    check_dpp("row_half_mirror" + masks, [](int lane) { return lane / 8 * 8 + 7 - lane % 8; });
    check_dpp("wave_shl:1" + masks, [](int lane) { return lane < 63 ? lane + 1 : kNone; });
    check_dpp("wave_shr:1" + masks, [](int lane) { return lane > 0 ? lane - 1 : kNone; });
    check_dpp("wave_rol:1" + masks, [](int lane) { return (lane + 1) % 64; });
    check_dpp("wave_ror:1" + masks, [](int lane) { return (lane + 63) % 64; });
    check_dpp("row_bcast:15" + masks, [](int lane) { return lane >= 16 ? lane / 16 * 16 - 1 : kNone; });
    check_dpp("row_bcast:31" + masks, [](int lane) { return lane >= 32 ? 31 : kNone; });
    check_dpp("row_newbcast:5" + masks, [](int lane) { return lane / 16 * 16 + 5; });
}

TEST_CASE("isa: DPP masks gate the destination only, and bound_ctrl writes zeros") {
    const auto shifted = [](int lane) { return lane % 16 >= 1 ? lane - 1 : kNone; };
    check_dpp("row_shr:1 row_mask:0xa bank_mask:0xf", shifted, false, ~std::uint64_t{0}, 0xa);
    check_dpp("row_shr:1 row_mask:0xf bank_mask:0x5", shifted, false, ~std::uint64_t{0}, 0xf, 0x5);
    for (const char* spelling : {" bound_ctrl:1", " bound_ctrl:0"})
        check_dpp(std::string("row_shr:1 row_mask:0xf bank_mask:0xf") + spelling, shifted, true);
    // A source lane that EXEC masks counts as out of range.
    check_dpp("row_shr:1 row_mask:0xf bank_mask:0xf", shifted, false, 0xaaaaffff00ff3333);
    check_dpp("row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1", shifted, true, 0xaaaaffff00ff3333);
}

TEST_CASE("isa: DPP on arithmetic takes the moved lane as the first source") {
    WaveState state;
    state.set_v(0, 7);
    state.set_v(1, lane_numbers(100));
    state.set_v(2, lane_numbers(1000));
    const WaveState after = run("v_sub_u32_dpp v0, v1, v2 row_shr:2 row_mask:0xf bank_mask:0xf", state);
    const WaveState zeros =
        run("v_sub_u32_dpp v0, v1, v2 row_shr:2 row_mask:0xf bank_mask:0xf bound_ctrl:1", state);
    for (unsigned lane = 0; lane < 64; ++lane) {
        const bool in_range = lane % 16 >= 2;
        CHECK(after.v(0)[lane] == (in_range ? 100 + lane - 2 - (1000 + lane) : 7));
        CHECK(zeros.v(0)[lane] == (in_range ? 100 + lane - 2 : 0) - (1000 + lane));
    }
}

TEST_CASE("isa: one lane to a scalar and back") {
    WaveState state;
    state.set_v(0, lane_numbers());
    state.set_v(1, lane_numbers(100));
    state.set_s(3, 41);
    state.exec = 0xfff0;
    CHECK(run("v_readfirstlane_b32 s0, v1", state).s(0) == 104);
    CHECK(run("v_readlane_b32 s0, v1, s3", state).s(0) == 141);  // EXEC does not matter
    CHECK(run("v_readlane_b32 s0, v1, 9", state).s(0) == 109);
    const WaveState written = run("v_writelane_b32 v0, s3, 60", state);
    for (unsigned lane = 0; lane < 64; ++lane)
        CHECK(written.v(0)[lane] == (lane == 60 ? 41 : lane));
    state.exec = 0;
    CHECK(run("v_readfirstlane_b32 s0, v1", state).s(0) == 100);  // lane 0 when none is active
}

TEST_CASE("isa: counting the lanes below") {
    WaveState state;
    state.set_v(1, 10);
    const WaveState ids = run("v_mbcnt_lo_u32_b32 v0, -1, 0\nv_mbcnt_hi_u32_b32 v0, -1, v0", state);
    for (unsigned lane = 0; lane < 64; ++lane)
        CHECK(ids.v(0)[lane] == lane);
    state.set_s(0, 0x0000ff00);
    state.set_s(1, 0x000000ff);
    const WaveState some = run("v_mbcnt_lo_u32_b32 v0, s0, v1\nv_mbcnt_hi_u32_b32 v0, s1, v0", state);
    for (unsigned lane = 0; lane < 64; ++lane) {
        u32 below = 10;
        for (unsigned other = 0; other < lane; ++other)
            below += (other >= 8 && other < 16) || (other >= 32 && other < 40) ? 1 : 0;
        CHECK(some.v(0)[lane] == below);
    }
}

TEST_CASE("isa: v_permlane swaps") {
    WaveState state;
    state.set_v(0, lane_numbers());
    state.set_v(1, lane_numbers(100));
    const WaveState halves = run("v_permlane32_swap_b32_e32 v0, v1", state);
    const WaveState rows = run("v_permlane16_swap_b32_e32 v0, v1", state);
    for (unsigned lane = 0; lane < 64; ++lane) {
        // The destination's upper half changes places with the source's lower half.
        CHECK(halves.v(0)[lane] == (lane < 32 ? lane : 100 + lane - 32));
        CHECK(halves.v(1)[lane] == (lane < 32 ? lane + 32 : 100 + lane));
        // The destination's odd rows change places with the source's even rows.
        const bool odd = lane / 16 % 2 == 1;
        CHECK(rows.v(0)[lane] == (odd ? 100 + lane - 16 : lane));
        CHECK(rows.v(1)[lane] == (odd ? 100 + lane : lane + 16));
    }
}

TEST_CASE("isa: permutes through LDS hardware") {
    Random random;
    CAPTURE(random.seed());
    WaveState state;
    Lanes address{};
    unsigned order[64];
    for (unsigned lane = 0; lane < 64; ++lane)
        order[lane] = lane;
    for (unsigned lane = 63; lane > 0; --lane)
        std::swap(order[lane], order[random.below(lane + 1)]);
    for (unsigned lane = 0; lane < 64; ++lane)
        address[lane] = 4 * order[lane];
    state.set_v(1, address);
    state.set_v(2, lane_numbers(100));
    const WaveState pulled = run("ds_bpermute_b32 v0, v1, v2\ns_waitcnt lgkmcnt(0)", state);
    const WaveState pushed = run("ds_permute_b32 v0, v1, v2\ns_waitcnt lgkmcnt(0)", state);
    const WaveState moved = run("ds_bpermute_b32 v0, v1, v2 offset:8\ns_waitcnt lgkmcnt(0)", state);
    for (unsigned lane = 0; lane < 64; ++lane) {
        CHECK(pulled.v(0)[lane] == 100 + order[lane]);
        CHECK(pushed.v(0)[order[lane]] == 100 + lane);
        CHECK(moved.v(0)[lane] == 100 + (order[lane] + 2) % 64);
    }
}

TEST_CASE("isa: ds_swizzle") {
    WaveState state;
    state.set_v(1, lane_numbers(100));
    const auto check = [&](const char* control, auto source) {
        CAPTURE(control);
        const WaveState after =
            run(std::string("ds_swizzle_b32 v0, v1 offset:") + control + "\ns_waitcnt lgkmcnt(0)", state);
        for (unsigned lane = 0; lane < 64; ++lane)
            CHECK(after.v(0)[lane] == 100 + source(lane));
    };
    check("swizzle(SWAP,16)", [](unsigned lane) { return lane ^ 16; });
    check("swizzle(SWAP,1)", [](unsigned lane) { return lane ^ 1; });
    check("swizzle(REVERSE,8)", [](unsigned lane) { return lane ^ 7; });
    check("swizzle(BROADCAST,4,2)", [](unsigned lane) { return lane / 4 * 4 + 2; });
    check("swizzle(QUAD_PERM,1,0,3,2)", [](unsigned lane) { return lane ^ 1; });
    // Mask characters are for lane bits 4 to 0: 0, 1, preserve, invert.
    check("swizzle(BITMASK_PERM,\"01pip\")",
          [](unsigned lane) { return (lane & ~0x1fu) | 0x08 | (lane & 0x05) | (~lane & 0x02); });
}

TEST_CASE("isa: ds_read_b64_tr_b16 transposes blocks of sixteen lanes") {
    WaveState state;
    // Each lane reads 8 bytes of its own; half h of lane l holds 4 * l + h.
    state.lds.resize(64 * 8);
    for (unsigned lane = 0; lane < 64; ++lane) {
        for (unsigned half = 0; half < 4; ++half) {
            const auto value = static_cast<std::uint16_t>(4 * lane + half);
            state.lds[lane * 8 + half * 2] = static_cast<std::byte>(value);
            state.lds[lane * 8 + half * 2 + 1] = static_cast<std::byte>(value >> 8);
        }
    }
    Lanes address{};
    for (unsigned lane = 0; lane < 64; ++lane)
        address[lane] = lane * 8;
    state.set_v(1, address);
    const WaveState after = run("ds_read_b64_tr_b16 v[2:3], v1\ns_waitcnt lgkmcnt(0)", state);
    for (unsigned lane = 0; lane < 64; ++lane) {
        for (unsigned n = 0; n < 4; ++n) {
            const unsigned from = (lane & ~15u) + (lane >> 2 & 3) + 4 * n;
            const u32 found = after.v(2 + n / 2)[lane] >> (16 * (n % 2)) & 0xffff;
            CAPTURE(lane);
            CAPTURE(n);
            CHECK(found == 4 * from + (lane & 3));
        }
    }
}
