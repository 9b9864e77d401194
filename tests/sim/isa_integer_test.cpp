// Vector instructions on integers and bits: what each mnemonic computes, in every lane, at edge numbers.
#include <algorithm>

#include "tests/sim/isa_support.hpp"

using namespace kiln::sim;
using namespace kiln::sim::test;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

namespace {

using Expected = u32 (*)(u32 x, u32 y, u32 z, u32 old);
struct Case {
    const char* text;
    Expected expected;
};

i32 s(u32 x) {
    return static_cast<i32>(x);
}
u32 low24(u32 x) {
    return x % (1u << 24);
}
i64 signed24(u32 x) {
    return low24(x) >= 1u << 23 ? i64{low24(x)} - (1 << 24) : i64{low24(x)};
}
u32 low16(u32 x) {
    return x % 65536;
}
i32 signed16(u32 x) {
    return static_cast<i32>(low16(x) ^ 0x8000) - 0x8000;
}
bool bit(u32 x, unsigned n) {
    return x >> n & 1;
}

// Builds a number bit by bit.
template <class Bit>
u32 by_bit(Bit value) {
    u32 result = 0;
    for (unsigned n = 0; n < 32; ++n)
        result |= (value(n) ? 1u : 0u) << n;
    return result;
}

const Case kCases[] = {
    {"v_mov_b32_e32 v0, v1", [](u32 x, u32, u32, u32) { return x; }},
    {"v_not_b32_e32 v0, v1", [](u32 x, u32, u32, u32) { return 0xffffffff - x; }},
    {"v_and_b32_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return by_bit([&](unsigned n) { return bit(x, n) && bit(y, n); }); }},
    {"v_or_b32_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return by_bit([&](unsigned n) { return bit(x, n) || bit(y, n); }); }},
    {"v_xor_b32_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return by_bit([&](unsigned n) { return bit(x, n) != bit(y, n); }); }},
    {"v_xnor_b32_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return by_bit([&](unsigned n) { return bit(x, n) == bit(y, n); }); }},
    {"v_and_or_b32 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { return by_bit([&](unsigned n) { return (bit(x, n) && bit(y, n)) || bit(z, n); }); }},
    {"v_or3_b32 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { return by_bit([&](unsigned n) { return bit(x, n) || bit(y, n) || bit(z, n); }); }},
    {"v_bfi_b32 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { return by_bit([&](unsigned n) { return bit(x, n) ? bit(y, n) : bit(z, n); }); }},
    {"v_bfrev_b32_e32 v0, v1", [](u32 x, u32, u32, u32) { return by_bit([&](unsigned n) { return bit(x, 31 - n); }); }},
    {"v_lshlrev_b32_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return by_bit([&](unsigned n) { return n >= x % 32 && bit(y, n - x % 32); }); }},
    {"v_lshrrev_b32_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return by_bit([&](unsigned n) { return n + x % 32 < 32 && bit(y, n + x % 32); }); }},
    {"v_ashrrev_i32_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return by_bit([&](unsigned n) { return bit(y, std::min(31u, n + x % 32)); }); }},
    {"v_lshl_or_b32 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { return static_cast<u32>(u64{x} << y % 32) | z; }},
    {"v_lshl_add_u32 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { return static_cast<u32>((u64{x} << y % 32) + z); }},
    {"v_add_lshl_u32 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { return static_cast<u32>((u64{x} + y) << z % 32); }},
    {"v_alignbit_b32 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { return by_bit([&](unsigned n) { const unsigned from = n + z % 32; return from < 32 ? bit(y, from) : bit(x, from - 32); }); }},
    {"v_alignbyte_b32 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { return by_bit([&](unsigned n) { const unsigned from = n + z % 4 * 8; return from < 32 ? bit(y, from) : bit(x, from - 32); }); }},
    {"v_bfe_u32 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { return by_bit([&](unsigned n) { return n < z % 32 && n + y % 32 < 32 && bit(x, n + y % 32); }); }},
    {"v_bfm_b32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return by_bit([&](unsigned n) { return n >= y % 32 && n < y % 32 + x % 32; }); }},
    {"v_add_u32_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return static_cast<u32>((u64{x} + y) % (u64{1} << 32)); }},
    {"v_sub_u32_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return static_cast<u32>(i64{x} - i64{y}); }},
    {"v_subrev_u32_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return static_cast<u32>(i64{y} - i64{x}); }},
    {"v_add3_u32 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { return static_cast<u32>(u64{x} + y + z); }},
    {"v_xad_u32 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { return static_cast<u32>(u64{x ^ y} + z); }},
    {"v_mul_lo_u32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return static_cast<u32>(u64{x} * y); }},
    {"v_mul_hi_u32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return static_cast<u32>((u64{x} * y) / (u64{1} << 32)); }},
    {"v_mul_hi_i32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return static_cast<u32>(static_cast<u64>(i64{s(x)} * s(y)) / (u64{1} << 32)); }},
    {"v_mul_u32_u24_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return static_cast<u32>(u64{low24(x)} * low24(y)); }},
    {"v_mul_i32_i24_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return static_cast<u32>(signed24(x) * signed24(y)); }},
    {"v_mul_hi_u32_u24_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return static_cast<u32>(u64{low24(x)} * low24(y) / (u64{1} << 32)); }},
    {"v_mul_hi_i32_i24_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return static_cast<u32>(static_cast<u64>(signed24(x) * signed24(y)) / (u64{1} << 32)); }},
    {"v_mad_u32_u24 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { return static_cast<u32>(u64{low24(x)} * low24(y) + z); }},
    {"v_mad_i32_i24 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { return static_cast<u32>(signed24(x) * signed24(y) + i64{z}); }},
    {"v_min_u32_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return std::min(x, y); }},
    {"v_max_u32_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return std::max(x, y); }},
    {"v_min_i32_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return static_cast<u32>(std::min(s(x), s(y))); }},
    {"v_max_i32_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return static_cast<u32>(std::max(s(x), s(y))); }},
    {"v_min3_u32 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { return std::min({x, y, z}); }},
    {"v_max3_u32 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { return std::max({x, y, z}); }},
    {"v_min3_i32 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { return static_cast<u32>(std::min({s(x), s(y), s(z)})); }},
    {"v_max3_i32 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { return static_cast<u32>(std::max({s(x), s(y), s(z)})); }},
    {"v_med3_u32 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { u32 v[3] = {x, y, z}; std::sort(v, v + 3); return v[1]; }},
    {"v_med3_i32 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { i32 v[3] = {s(x), s(y), s(z)}; std::sort(v, v + 3); return static_cast<u32>(v[1]); }},
    {"v_bcnt_u32_b32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { u32 count = y; for (unsigned n = 0; n < 32; ++n) count += bit(x, n); return count; }},
    {"v_ffbh_u32_e32 v0, v1", [](u32 x, u32, u32, u32) { for (unsigned n = 0; n < 32; ++n) if (bit(x, 31 - n)) return u32{n}; return 0xffffffffu; }},
    {"v_ffbl_b32_e32 v0, v1", [](u32 x, u32, u32, u32) { for (unsigned n = 0; n < 32; ++n) if (bit(x, n)) return u32{n}; return 0xffffffffu; }},
    {"v_ffbh_i32_e32 v0, v1", [](u32 x, u32, u32, u32) { for (unsigned n = 1; n < 32; ++n) if (bit(x, 31 - n) != bit(x, 31)) return u32{n}; return 0xffffffffu; }},
    {"v_sad_u32 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { return static_cast<u32>(std::max(x, y) - std::min(x, y) + u64{z}); }},
    {"v_add_i32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return static_cast<u32>(u64{x} + y); }},
    {"v_sub_i32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return static_cast<u32>(i64{x} - i64{y}); }},
    // Sixteen bits: the upper half of the destination becomes zero.
    {"v_subrev_u16_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return (65536 + low16(y) - low16(x)) % 65536; }},
    {"v_max_u16_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return std::max(low16(x), low16(y)); }},
    {"v_min_i16_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return low16(static_cast<u32>(std::min(signed16(x), signed16(y)))); }},
    {"v_mad_legacy_u16 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { return low16(low16(x) * low16(y) + low16(z)); }},
    // Of those with op_sel, the half that is not written is kept.
    {"v_mad_u16 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32 old) { return (old & 0xffff0000) | low16(low16(x) * low16(y) + low16(z)); }},
    {"v_add_u16_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return (low16(x) + low16(y)) % 65536; }},
    {"v_sub_u16_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return (65536 + low16(x) - low16(y)) % 65536; }},
    {"v_mul_lo_u16_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return low16(x) * low16(y) % 65536; }},
    {"v_lshlrev_b16_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return (low16(y) << x % 16) % 65536; }},
    {"v_lshrrev_b16_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return low16(y) >> x % 16; }},
    {"v_ashrrev_i16_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return low16(static_cast<u32>(signed16(y) >> x % 16)); }},
    {"v_min_u16_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return std::min(low16(x), low16(y)); }},
    {"v_max_i16_e32 v0, v1, v2", [](u32 x, u32 y, u32, u32) { return low16(static_cast<u32>(std::max(signed16(x), signed16(y)))); }},
    {"v_mad_u32_u16 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { return static_cast<u32>(u64{low16(x)} * low16(y) + z); }},
    {"v_mad_i32_i16 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) { return static_cast<u32>(i64{signed16(x)} * signed16(y) + z); }},
};

}  // namespace

TEST_CASE("isa: integer instructions compute what the ISA says, in every lane") {
    for (const Case& c : kCases)
        check_lanes(c.text, c.expected);
}

TEST_CASE("isa: v_bfe_i32 extends the field's own sign, and is zero for an empty field") {
    check_lanes("v_bfe_i32 v0, v1, v2, v3", [](u32 x, u32 y, u32 z, u32) {
        const unsigned width = z % 32;
        if (width == 0)
            return 0u;
        // Bits past the source's top are copies of nothing: zero, and the sign is the field's highest bit.
        const unsigned offset = y % 32;
        return by_bit([&](unsigned n) {
            const unsigned from = offset + std::min(n, width - 1);
            return from < 32 ? bit(x, from) : false;
        });
    });
}

TEST_CASE("isa: packed 16-bit instructions treat each half by itself") {
    const auto halves = [](auto f) {
        return [f](u32 x, u32 y, u32 z, u32) {
            return low16(f(low16(x), low16(y), low16(z))) | low16(f(x >> 16, y >> 16, z >> 16)) << 16;
        };
    };
    check_lanes("v_pk_add_u16 v0, v1, v2", halves([](u32 x, u32 y, u32) { return x + y; }));
    check_lanes("v_pk_sub_i16 v0, v1, v2", halves([](u32 x, u32 y, u32) { return x - y; }));
    check_lanes("v_pk_mul_lo_u16 v0, v1, v2", halves([](u32 x, u32 y, u32) { return x * y; }));
    check_lanes("v_pk_lshlrev_b16 v0, v1, v2", halves([](u32 x, u32 y, u32) { return y << x % 16; }));
    check_lanes("v_pk_min_i16 v0, v1, v2", halves([](u32 x, u32 y, u32) {
                    return static_cast<u32>(std::min(signed16(x), signed16(y)));
                }));
    check_lanes("v_pk_max_u16 v0, v1, v2", halves([](u32 x, u32 y, u32) { return std::max(x, y); }));
    check_lanes("v_pk_sub_u16 v0, v1, v2", halves([](u32 x, u32 y, u32) { return x - y; }));
    check_lanes("v_pk_add_i16 v0, v1, v2", halves([](u32 x, u32 y, u32) { return x + y; }));
    check_lanes("v_pk_lshrrev_b16 v0, v1, v2", halves([](u32 x, u32 y, u32) { return y >> x % 16; }));
    check_lanes("v_pk_ashrrev_i16 v0, v1, v2",
                halves([](u32 x, u32 y, u32) { return static_cast<u32>(signed16(y) >> x % 16); }));
    check_lanes("v_pk_max_i16 v0, v1, v2", halves([](u32 x, u32 y, u32) {
                    return static_cast<u32>(std::max(signed16(x), signed16(y)));
                }));
    check_lanes("v_pk_min_u16 v0, v1, v2", halves([](u32 x, u32 y, u32) { return std::min(x, y); }));
    check_lanes("v_pk_mad_i16 v0, v1, v2, v3", halves([](u32 x, u32 y, u32 z) { return x * y + z; }));
    check_lanes("v_pk_mad_u16 v0, v1, v2, v3", halves([](u32 x, u32 y, u32 z) { return x * y + z; }));
    // op_sel picks the halves for the low result, op_sel_hi those for the high one.
    check_lanes("v_pk_add_u16 v0, v1, v2 op_sel:[1,0] op_sel_hi:[0,1]", [](u32 x, u32 y, u32, u32) {
        return low16((x >> 16) + low16(y)) | low16(low16(x) + (y >> 16)) << 16;
    });
}

TEST_CASE("isa: constants and scalars reach every lane") {
    Random random;
    WaveState state;
    state.set_v(1, edge_lanes(random));
    state.set_s(7, 0x12345678);
    for (unsigned lane = 0; lane < 64; ++lane) {
        CHECK(run("v_add_u32_e32 v0, s7, v1", state).v(0)[lane] == state.v(1)[lane] + 0x12345678);
        CHECK(run("v_add_u32_e32 v0, -16, v1", state).v(0)[lane] == state.v(1)[lane] - 16);
        CHECK(run("v_add_u32_e32 v0, 64, v1", state).v(0)[lane] == state.v(1)[lane] + 64);
        CHECK(run("v_add_u32_e32 v0, 0xdeadbeef, v1", state).v(0)[lane] == state.v(1)[lane] + 0xdeadbeef);
        CHECK(run("v_add_u32_e32 v0, 1.0, v1", state).v(0)[lane] == state.v(1)[lane] + 0x3f800000);
        CHECK(run("v_xor_b32_e32 v0, 0.15915494, v1", state).v(0)[lane] == (state.v(1)[lane] ^ 0x3e22f983));
    }
}

TEST_CASE("isa: lanes that EXEC masks keep their destination") {
    WaveState state;
    state.exec = 0x8000000100000002;
    state.set_v(0, lane_numbers(1000));
    state.set_v(1, lane_numbers(0));
    const WaveState after = run("v_add_u32_e32 v0, 5, v1", state);
    for (unsigned lane = 0; lane < 64; ++lane)
        CHECK(after.v(0)[lane] == (state.exec >> lane & 1 ? lane + 5 : lane + 1000));
}

TEST_CASE("isa: carries go in and out lane by lane") {
    Random random;
    CAPTURE(random.seed());
    WaveState state;
    const Lanes x = edge_lanes(random), y = edge_lanes(random);
    state.set_v(1, x);
    state.set_v(2, y);
    state.vcc = 0xf0f0f0f0f0f0f0f0;
    state.set_s64(10, 0x00ff00ff00ff00ff);
    const auto check = [&](const char* text, auto exact, bool to_vcc) {
        CAPTURE(text);
        const WaveState after = run(text, state);
        const u64 carries = to_vcc ? *after.vcc : after.s64(12);
        for (unsigned lane = 0; lane < 64; ++lane) {
            CAPTURE(lane);
            const i64 sum = exact(i64{x[lane]}, i64{y[lane]}, i64(*state.vcc >> lane & 1),
                                  i64(state.s64(10) >> lane & 1));
            CHECK(after.v(0)[lane] == static_cast<u32>(sum));
            CHECK((carries >> lane & 1) == (sum < 0 || sum > 0xffffffff ? 1 : 0));
        }
    };
    check(
        "v_add_co_u32_e32 v0, vcc, v1, v2", [](i64 a, i64 b, i64, i64) { return a + b; }, true);
    check(
        "v_sub_co_u32_e32 v0, vcc, v1, v2", [](i64 a, i64 b, i64, i64) { return a - b; }, true);
    check(
        "v_subrev_co_u32_e32 v0, vcc, v1, v2", [](i64 a, i64 b, i64, i64) { return b - a; }, true);
    check(
        "v_addc_co_u32_e32 v0, vcc, v1, v2, vcc", [](i64 a, i64 b, i64 c, i64) { return a + b + c; }, true);
    check(
        "v_subb_co_u32_e32 v0, vcc, v1, v2, vcc", [](i64 a, i64 b, i64 c, i64) { return a - b - c; }, true);
    check(
        "v_subbrev_co_u32_e32 v0, vcc, v1, v2, vcc", [](i64 a, i64 b, i64 c, i64) { return b - a - c; },
        true);
    check(
        "v_add_co_u32_e64 v0, s[12:13], v1, v2", [](i64 a, i64 b, i64, i64) { return a + b; }, false);
    check(
        "v_addc_co_u32_e64 v0, s[12:13], v1, v2, s[10:11]",
        [](i64 a, i64 b, i64, i64 c) { return a + b + c; }, false);
}

TEST_CASE("isa: 64-bit vector arithmetic") {
    Random random;
    CAPTURE(random.seed());
    WaveState state;
    Lanes part[6];
    for (unsigned i = 0; i < 6; ++i) {
        part[i] = edge_lanes(random);
        state.set_v(2 + i, part[i]);
    }
    const auto check = [&](const char* text, auto exact) {
        CAPTURE(text);
        const WaveState after = run(text, state);
        for (unsigned lane = 0; lane < 64; ++lane) {
            const auto pair = [&](unsigned i) { return part[i][lane] | u64{part[i + 1][lane]} << 32; };
            const u64 want = exact(pair(0), pair(2), pair(4), part[0][lane], part[1][lane]);
            CAPTURE(lane);
            CHECK(after.v(0)[lane] == static_cast<u32>(want));
            CHECK(after.v(1)[lane] == static_cast<u32>(want >> 32));
        }
    };
    check("v_mov_b64_e32 v[0:1], v[2:3]", [](u64 a, u64, u64, u32, u32) { return a; });
    check("v_lshlrev_b64 v[0:1], v2, v[4:5]", [](u64, u64 b, u64, u32 x, u32) { return b << x % 64; });
    check("v_lshrrev_b64 v[0:1], v2, v[4:5]", [](u64, u64 b, u64, u32 x, u32) { return b >> x % 64; });
    check("v_ashrrev_i64 v[0:1], v2, v[4:5]", [](u64, u64 b, u64, u32 x, u32) {
        return x % 64 == 0 ? b : b >> x % 64 | (b >> 63 ? ~u64{0} << (64 - x % 64) : 0);
    });
    check("v_lshl_add_u64 v[0:1], v[2:3], 3, v[6:7]", [](u64 a, u64, u64 c, u32, u32) { return a * 8 + c; });
    check("v_mad_u64_u32 v[0:1], vcc, v2, v3, v[6:7]",
          [](u64, u64, u64 c, u32 x, u32 y) { return u64{x} * y + c; });
    check("v_mad_i64_i32 v[0:1], vcc, v2, v3, v[6:7]",
          [](u64, u64, u64 c, u32 x, u32 y) { return static_cast<u64>(i64{s(x)} * s(y)) + c; });
}

TEST_CASE("isa: registers change places, and pass between the two register files") {
    WaveState state;
    state.set_v(0, lane_numbers());
    state.set_v(1, lane_numbers(100));
    state.set_a(3, lane_numbers(200));
    const WaveState swapped = run("v_swap_b32 v0, v1", state);
    const WaveState moved =
        run("v_accvgpr_write_b32 a0, v1\nv_accvgpr_read_b32 v2, a3\nv_accvgpr_mov_b32 a1, a3\nv_nop", state);
    for (unsigned lane = 0; lane < 64; ++lane) {
        CHECK(swapped.v(0)[lane] == 100 + lane);
        CHECK(swapped.v(1)[lane] == lane);
        CHECK(moved.a(0)[lane] == 100 + lane);
        CHECK(moved.v(2)[lane] == 200 + lane);
        CHECK(moved.a(1)[lane] == 200 + lane);
    }
}

TEST_CASE("isa: v_perm_b32 picks bytes, signs and constants") {
    WaveState state;
    state.set_v(1, 0x87654321);  // bytes 4 to 7
    state.set_v(2, 0x0f1e8d3c);  // bytes 0 to 3
    const u32 bytes[14] = {0x3c, 0x8d, 0x1e, 0x0f, 0x21, 0x43, 0x65, 0x87,
                           // Signs of bytes 1, 3, 5 and 7; then 0 and 0xff.
                           0xff, 0x00, 0x00, 0xff, 0x00, 0xff};
    for (unsigned selector = 0; selector < 14; ++selector) {
        for (unsigned place = 0; place < 4; ++place) {
            state.set_v(3, 0x0c0c0c0cu ^ ((0x0c ^ selector) << (8 * place)));
            CAPTURE(selector);
            CHECK(run("v_perm_b32 v0, v1, v2, v3", state).v(0)[9] == bytes[selector] << (8 * place));
        }
    }
}

TEST_CASE("isa: v_bitop3_b32 looks every bit up in its table") {
    for (const unsigned table :
         {0x00u, 0x01u, 0x0fu, 0x33u, 0x55u, 0x80u, 0x96u, 0xcau, 0xe8u, 0xfeu, 0xffu}) {
        char text[64];
        std::snprintf(text, sizeof text, "v_bitop3_b32 v0, v1, v2, v3 bitop3:0x%x", table);
        check_lanes(text, [table](u32 x, u32 y, u32 z, u32) {
            return by_bit(
                [&](unsigned n) { return bit(table, 4u * bit(x, n) + 2u * bit(y, n) + bit(z, n)); });
        });
    }
}

TEST_CASE("isa: SDWA selects, extends and keeps parts of registers") {
    const auto part = [](u32 x, unsigned position, unsigned bits) {
        return x >> position & ((1u << bits) - 1);
    };
    check_lanes(
        "v_add_u32_sdwa v0, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:WORD_1",
        [&](u32 x, u32 y, u32, u32) { return part(x, 8, 8) + part(y, 16, 16); });
    check_lanes(
        "v_and_b32_sdwa v0, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3 src1_sel:DWORD",
        [&](u32 x, u32 y, u32, u32) { return part(x, 24, 8) & y; });
    check_lanes(
        "v_add_u32_sdwa v0, sext(v1), v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_2 src1_sel:DWORD",
        [&](u32 x, u32 y, u32, u32) {
            return static_cast<u32>(static_cast<std::int8_t>(part(x, 16, 8))) + y;
        });
    check_lanes(
        "v_or_b32_sdwa v0, v1, v2 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0 src1_sel:BYTE_2",
        [&](u32 x, u32 y, u32, u32 old) {
            return (old & 0xffff00ff) | (part(x, 0, 8) | part(y, 16, 8)) << 8;
        });
    check_lanes(
        "v_or_b32_sdwa v0, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:WORD_0 src1_sel:WORD_1",
        [&](u32 x, u32 y, u32, u32) { return (part(x, 0, 16) | part(y, 16, 16)) << 16; });
    check_lanes("v_mov_b32_sdwa v0, v1 dst_sel:BYTE_0 dst_unused:UNUSED_SEXT src0_sel:BYTE_3",
                [&](u32 x, u32, u32, u32) { return static_cast<u32>(static_cast<std::int8_t>(x >> 24)); });
    check_lanes(
        "v_lshlrev_b32_sdwa v0, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_0 src1_sel:WORD_0",
        [&](u32 x, u32 y, u32, u32) { return part(y, 0, 16) << (x % 32); });
}

TEST_CASE("isa: what the simulator does not know fails by name") {
    WaveState state;
    state.set_v(1, 1);
    CHECK(fails("v_no_such_thing_b32 v0, v1", state));
    // v9 was never written: what is computed from it is undefined, and an error where it comes to matter.
    CHECK(run("v_add_u32_e32 v0, v1, v9", state).vgprs.count(0) == 0);
    state.lds.resize(64);
    const auto used = run_wave("v_add_u32_e32 v0, v1, v9\nds_read_b32 v3, v0", state);
    REQUIRE_FALSE(used);
    CHECK(used.error().message.find("v9") != std::string::npos);
    const auto result = run_wave("v_no_such_thing_b32 v0, v1", state);
    REQUIRE_FALSE(result);
    CHECK(result.error().message.find("v_no_such_thing_b32") != std::string::npos);
}
