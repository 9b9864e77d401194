// Floating-point vector instructions: results, modifiers, comparisons, division, transcendentals.
#include "tests/sim/isa_support.hpp"

using namespace kiln::sim;
using namespace kiln::sim::test;
using u32 = std::uint32_t;

namespace {

float f(u32 x) {
    return as_float(x);
}
u32 b(float x) {
    return as_bits(x);
}
bool nan(u32 x) {
    return std::isnan(f(x));
}

constexpr u32 kInf = 0x7f800000;
constexpr u32 kNan = 0x7fc00000;

// One result for given v1, v2, v3 (the same in all lanes).
u32 one(const std::string& text, u32 x, u32 y = 0, u32 z = 0) {
    WaveState state;
    state.set_v(0, 0x55555555);
    state.set_v(1, x);
    state.set_v(2, y);
    state.set_v(3, z);
    return run(text, state).v(0)[21];
}

// Like check_lanes, where any NaN is as good as another.
template <class Expected>
void check_floats(const std::string& text, Expected expected) {
    Random random;
    CAPTURE(text);
    CAPTURE(random.seed());
    for (int round = 0; round < 8; ++round) {
        WaveState state;
        Lanes lanes[4];
        for (unsigned i = 0; i < 4; ++i) {
            lanes[i] = edge_lanes(random);
            // Numbers of like size, so that sums round.
            for (unsigned lane = 0; lane < 48; ++lane)
                lanes[i][lane] = (random.bits() & 0x807fffff) | (120 + random.below(16)) << 23;
            state.set_v(i, lanes[i]);
        }
        const WaveState after = run(text, state);
        for (unsigned lane = 0; lane < 64; ++lane) {
            CAPTURE(lane);
            CAPTURE(lanes[1][lane]);
            CAPTURE(lanes[2][lane]);
            CAPTURE(lanes[3][lane]);
            const float want =
                expected(f(lanes[1][lane]), f(lanes[2][lane]), f(lanes[3][lane]), f(lanes[0][lane]));
            const u32 found = after.v(0)[lane];
            if (std::isnan(want))
                REQUIRE(nan(found));
            else
                REQUIRE(found == b(want));
        }
    }
}

}  // namespace

TEST_CASE("isa: float arithmetic rounds once and keeps denormals") {
    check_floats("v_add_f32_e32 v0, v1, v2", [](float x, float y, float, float) { return x + y; });
    check_floats("v_sub_f32_e32 v0, v1, v2", [](float x, float y, float, float) { return x - y; });
    check_floats("v_subrev_f32_e32 v0, v1, v2", [](float x, float y, float, float) { return y - x; });
    check_floats("v_mul_f32_e32 v0, v1, v2", [](float x, float y, float, float) { return x * y; });
    check_floats("v_fma_f32 v0, v1, v2, v3",
                 [](float x, float y, float z, float) { return std::fma(x, y, z); });
    check_floats("v_fmac_f32_e32 v0, v1, v2",
                 [](float x, float y, float, float old) { return std::fma(x, y, old); });
    check_floats("v_fmamk_f32 v0, v1, 0x40490fdb, v2",
                 [](float x, float y, float, float) { return std::fma(x, f(0x40490fdb), y); });
    check_floats("v_fmaak_f32 v0, v1, v2, 0x40490fdb",
                 [](float x, float y, float, float) { return std::fma(x, y, f(0x40490fdb)); });
    CHECK(one("v_add_f32_e32 v0, v1, v2", 0x00000001, 0x00000002) == 0x00000003);
    CHECK(one("v_mul_f32_e32 v0, v1, v2", 0x00800000, b(0.5f)) == 0x00400000);
    // A fused product keeps the bits that a rounded one loses: (1 + 2^-12)^2 - (1 + 2^-11) = 2^-24.
    CHECK(one("v_fma_f32 v0, v1, v2, v3", b(1 + 0x1p-12f), b(1 + 0x1p-12f), b(-(1 + 0x1p-11f))) ==
          b(0x1p-24f));
}

TEST_CASE("isa: neg, abs, clamp and the output multiplier") {
    check_floats("v_add_f32_e64 v0, -v1, |v2|",
                 [](float x, float y, float, float) { return -x + std::fabs(y); });
    check_floats("v_fma_f32 v0, -v1, v2, -|v3|",
                 [](float x, float y, float z, float) { return std::fma(-x, y, -std::fabs(z)); });
    CHECK(one("v_add_f32_e64 v0, v1, v2 clamp", b(0.75f), b(0.5f)) == b(1.0f));
    CHECK(one("v_add_f32_e64 v0, v1, v2 clamp", b(0.75f), b(-2.0f)) == 0);
    CHECK(one("v_add_f32_e64 v0, v1, v2 clamp", b(0.75f), b(-0.5f)) == b(0.25f));
    CHECK(one("v_max_f32_e64 v0, v1, v1", b(-3.0f)) == b(-3.0f));
    CHECK(one("v_mov_b32_e32 v0, v1", 0x7f800001) == 0x7f800001);
}

TEST_CASE("isa: packed floats") {
    Random random;
    CAPTURE(random.seed());
    WaveState state;
    for (unsigned i = 2; i < 8; ++i) {
        Lanes lanes{};
        for (auto& lane : lanes)
            lane = b(static_cast<float>(random.uniform(-100, 100)));
        state.set_v(i, lanes);
    }
    const auto at = [&](unsigned reg, unsigned lane) { return f(state.v(reg)[lane]); };
    const auto check = [&](const char* text, auto low, auto high) {
        CAPTURE(text);
        const WaveState after = run(text, state);
        for (unsigned lane = 0; lane < 64; ++lane) {
            CHECK(after.v(0)[lane] == b(low(lane)));
            CHECK(after.v(1)[lane] == b(high(lane)));
        }
    };
    check(
        "v_pk_add_f32 v[0:1], v[2:3], v[4:5]", [&](unsigned l) { return at(2, l) + at(4, l); },
        [&](unsigned l) { return at(3, l) + at(5, l); });
    check(
        "v_pk_mul_f32 v[0:1], v[2:3], v[4:5] op_sel_hi:[1,0]",
        [&](unsigned l) { return at(2, l) * at(4, l); }, [&](unsigned l) { return at(3, l) * at(4, l); });
    check(
        "v_pk_mul_f32 v[0:1], v[2:3], v[4:5] op_sel:[0,1]", [&](unsigned l) { return at(2, l) * at(5, l); },
        [&](unsigned l) { return at(3, l) * at(5, l); });
    check(
        "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7] neg_lo:[0,0,1] neg_hi:[1,0,0]",
        [&](unsigned l) { return std::fma(at(2, l), at(4, l), -at(6, l)); },
        [&](unsigned l) { return std::fma(-at(3, l), at(5, l), at(7, l)); });
    check(
        "v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[1,0]", [&](unsigned l) { return at(3, l); },
        [&](unsigned l) { return at(4, l); });
    check(
        "v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[0,1]", [&](unsigned l) { return at(2, l); },
        [&](unsigned l) { return at(5, l); });
}

TEST_CASE("isa: min, max and med3 by NaN and zeros") {
    CHECK(one("v_min_f32_e32 v0, v1, v2", kNan, b(2.0f)) == b(2.0f));
    CHECK(one("v_max_f32_e32 v0, v1, v2", b(2.0f), kNan) == b(2.0f));
    CHECK(one("v_min_f32_e32 v0, v1, v2", 0x80000000, 0) == 0x80000000);
    CHECK(one("v_min_f32_e32 v0, v1, v2", 0, 0x80000000) == 0x80000000);
    CHECK(one("v_max_f32_e32 v0, v1, v2", 0x80000000, 0) == 0);
    CHECK(one("v_max_f32_e32 v0, v1, v2", 0, 0x80000000) == 0);
    CHECK(one("v_max_f32_e32 v0, v1, v2", 0x7f800001, b(1.0f)) == 0x7fc00001);  // quieted
    CHECK(one("v_max3_f32 v0, v1, v2, v3", b(1.0f), b(5.0f), b(3.0f)) == b(5.0f));
    CHECK(one("v_min3_f32 v0, v1, v2, v3", b(1.0f), b(-5.0f), b(3.0f)) == b(-5.0f));
    CHECK(one("v_med3_f32 v0, v1, v2, v3", b(7.0f), b(-5.0f), b(3.0f)) == b(3.0f));
    CHECK(one("v_med3_f32 v0, v1, v2, v3", kNan, b(-5.0f), b(3.0f)) == b(-5.0f));
    const u32 values[3] = {b(-1.5f), b(2.0f), b(7.0f)};
    const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (const auto& order : orders)
        CHECK(one("v_med3_f32 v0, v1, v2, v3", values[order[0]], values[order[1]], values[order[2]]) ==
              b(2.0f));
    CHECK(one("v_med3_f32 v0, v1, v2, v3", b(3.0f), b(2.0f), kNan) == b(2.0f));
    CHECK(one("v_minimum3_f32 v0, v1, v2, v3", b(2.0f), b(1.0f), kInf) == b(1.0f));
    CHECK(one("v_max3_f32 v0, |v1|, |v2|, v3", b(1.0f), b(-5.0f), b(3.0f)) == b(5.0f));
    CHECK(nan(one("v_maximum3_f32 v0, v1, v2, v3", b(1.0f), kNan, b(3.0f))));
}

TEST_CASE("isa: comparisons, with NaN on either side") {
    // Lanes: less, equal, greater, NaN left, NaN right, both NaN, -0 against +0.
    const u32 left[7] = {b(1.0f), b(2.0f), b(3.0f), kNan, b(2.0f), kNan, 0x80000000};
    const u32 right[7] = {b(2.0f), b(2.0f), b(2.0f), b(2.0f), kNan, kNan, 0x00000000};
    const struct {
        const char* condition;
        unsigned truth;  // bit n for lane n
    } cases[] = {{"lt", 0b0000001},  {"eq", 0b1000010},  {"le", 0b1000011},  {"gt", 0b0000100},
                 {"lg", 0b0000101},  {"ge", 0b1000110},  {"o", 0b1000111},   {"u", 0b0111000},
                 {"nge", 0b0111001}, {"nlg", 0b1111010}, {"ngt", 0b1111011}, {"nle", 0b0111100},
                 {"neq", 0b0111101}, {"nlt", 0b1111110}};
    WaveState state;
    Lanes x{}, y{};
    for (unsigned lane = 0; lane < 64; ++lane) {
        x[lane] = left[lane % 7];
        y[lane] = right[lane % 7];
    }
    state.set_v(1, x);
    state.set_v(2, y);
    state.exec = 0xffff00000000ffff;
    for (const auto& c : cases) {
        CAPTURE(c.condition);
        const WaveState to_vcc = run(std::string("v_cmp_") + c.condition + "_f32_e32 vcc, v1, v2", state);
        const WaveState to_sgpr = run(std::string("v_cmp_") + c.condition + "_f32_e64 s[4:5], v1, v2", state);
        std::uint64_t expected = 0;
        for (unsigned lane = 0; lane < 64; ++lane)
            expected |= std::uint64_t{c.truth >> lane % 7 & 1} << lane;
        expected &= state.exec;  // masked lanes give 0
        CHECK(*to_vcc.vcc == expected);
        CHECK(to_sgpr.s64(4) == expected);
    }
}

TEST_CASE("isa: integer comparisons know signs and widths") {
    WaveState state;
    state.set_v(1, 0xffffffff);
    state.set_v(2, 0x00000001);
    state.set_v(3, 0x00000000);
    state.set_v(4, 0x00000001);
    const auto all = [&](const char* text) {
        const std::uint64_t vcc = *run(text, state).vcc;
        const bool uniform = vcc == 0 || vcc == ~std::uint64_t{0};
        REQUIRE(uniform);
        return vcc != 0;
    };
    CHECK(all("v_cmp_lt_i32_e32 vcc, v1, v2"));
    CHECK_FALSE(all("v_cmp_lt_u32_e32 vcc, v1, v2"));
    CHECK(all("v_cmp_gt_u32_e32 vcc, v1, v2"));
    CHECK(all("v_cmp_ne_u32_e32 vcc, v1, v2"));
    CHECK(all("v_cmp_eq_u32_e32 vcc, v2, v4"));
    CHECK(all("v_cmp_le_i32_e32 vcc, -1, v1"));
    CHECK(all("v_cmp_lt_i16_e32 vcc, v1, v2"));
    CHECK(all("v_cmp_gt_u16_e32 vcc, v1, v2"));
    // v[1:2] = 0x1_ffffffff and v[3:4] = 0x1_00000000.
    CHECK(all("v_cmp_gt_u64_e32 vcc, v[1:2], v[3:4]"));
    CHECK(all("v_cmp_ne_u64_e32 vcc, v[1:2], v[3:4]"));
}

TEST_CASE("isa: v_cmpx narrows EXEC") {
    WaveState state;
    state.exec = 0x00000000ffffffff;
    state.set_v(1, lane_numbers());
    const WaveState after = run("v_cmpx_gt_u32_e32 vcc, 8, v1", state);
    CHECK(after.exec == 0xff);
    CHECK(*after.vcc == 0xff);
}

TEST_CASE("isa: v_cmp_class and v_cndmask") {
    WaveState state;
    Lanes x{};
    const u32 members[10] = {0x7f800001, kNan, 0xff800000, b(-1.0f), 0x80000001,
                             0x80000000, 0,    1,          b(1.0f),  kInf};
    for (unsigned lane = 0; lane < 64; ++lane)
        x[lane] = members[lane % 10];
    state.set_v(1, x);
    for (unsigned bit = 0; bit < 10; ++bit) {
        state.set_v(2, 1u << bit);
        const std::uint64_t vcc = *run("v_cmp_class_f32_e32 vcc, v1, v2", state).vcc;
        for (unsigned lane = 0; lane < 64; ++lane)
            CHECK((vcc >> lane & 1) == (lane % 10 == bit ? 1 : 0));
    }
    state.vcc = 0xaaaaaaaaaaaaaaaa;
    state.set_s64(4, 0x00000000ffffffff);
    state.set_v(2, lane_numbers(100));
    const WaveState by_vcc = run("v_cndmask_b32_e32 v0, v1, v2, vcc", state);
    const WaveState by_sgpr = run("v_cndmask_b32_e64 v0, 0, -v2, s[4:5]", state);
    for (unsigned lane = 0; lane < 64; ++lane) {
        CHECK(by_vcc.v(0)[lane] == (lane % 2 == 1 ? lane + 100 : x[lane]));
        CHECK(by_sgpr.v(0)[lane] == (lane < 32 ? (lane + 100) | 0x80000000 : 0));
    }
}

TEST_CASE("isa: transcendentals through their mnemonics") {
    CHECK(one("v_rcp_f32_e32 v0, v1", b(4.0f)) == b(0.25f));
    CHECK(one("v_rcp_iflag_f32_e32 v0, v1", b(4.0f)) == b(0.25f));
    CHECK(one("v_rsq_f32_e32 v0, v1", b(16.0f)) == b(0.25f));
    CHECK(one("v_sqrt_f32_e32 v0, v1", b(9.0f)) == b(3.0f));
    CHECK(one("v_exp_f32_e32 v0, v1", b(-3.0f)) == b(0.125f));
    CHECK(one("v_log_f32_e32 v0, v1", b(32.0f)) == b(5.0f));
    CHECK(one("v_exp_f32_e64 v0, -v1", b(-3.0f)) == b(8.0f));
    CHECK(one("v_rcp_f32_e32 v0, v1", 0x00000001) == kInf);
    CHECK(one("v_exp_f32_e32 v0, v1", b(-127.0f)) == 0);
    CHECK(one("v_ldexp_f32 v0, v1, v2", b(3.0f), 5) == b(96.0f));
    CHECK(one("v_ldexp_f32 v0, v1, -1", b(3.0f)) == b(1.5f));
    CHECK(one("v_frexp_mant_f32_e32 v0, v1", b(96.0f)) == b(0.75f));
    CHECK(one("v_frexp_exp_i32_f32_e32 v0, v1", b(96.0f)) == 7);
    CHECK(one("v_fract_f32_e32 v0, v1", b(-0.25f)) == b(0.75f));
    CHECK(one("v_rndne_f32_e32 v0, v1", b(2.5f)) == b(2.0f));
    CHECK(one("v_floor_f32_e32 v0, v1", b(-2.5f)) == b(-3.0f));
    CHECK(one("v_ceil_f32_e32 v0, v1", b(-2.5f)) == b(-2.0f));
    CHECK(one("v_trunc_f32_e32 v0, v1", b(-2.5f)) == b(-2.0f));
}

TEST_CASE("isa: the division sequence that clang emits gives the IEEE quotient") {
    // As printed for n / d with n in v1 and d in v2.
    const char* sequence =
        "v_div_scale_f32 v4, s[0:1], v2, v2, v1\n"
        "v_rcp_f32_e32 v5, v4\n"
        "v_fma_f32 v6, -v4, v5, 1.0\n"
        "v_fmac_f32_e32 v5, v6, v5\n"
        "v_div_scale_f32 v6, vcc, v1, v2, v1\n"
        "v_mul_f32_e32 v7, v6, v5\n"
        "v_fma_f32 v8, -v4, v7, v6\n"
        "v_fmac_f32_e32 v7, v8, v5\n"
        "v_fma_f32 v4, -v4, v7, v6\n"
        "v_div_fmas_f32 v4, v4, v5, v7\n"
        "v_div_fixup_f32 v0, v4, v2, v1\n";
    Random random;
    CAPTURE(random.seed());
    for (int round = 0; round < 100; ++round) {
        WaveState state;
        Lanes n = edge_lanes(random), d = edge_lanes(random);
        for (unsigned lane = 0; lane < 64; lane += 2)
            n[lane] = round % 2 == 0 ? b(1.0f) : random.bits();
        state.set_v(1, n);
        state.set_v(2, d);
        const WaveState after = run(sequence, state);
        for (unsigned lane = 0; lane < 64; ++lane) {
            CAPTURE(n[lane]);
            CAPTURE(d[lane]);
            const float want = f(n[lane]) / f(d[lane]);
            const u32 found = after.v(0)[lane];
            if (std::isnan(want))
                REQUIRE(nan(found));
            else
                REQUIRE(found == b(want));
        }
    }
}

TEST_CASE("isa: f64 arithmetic") {
    WaveState state;
    const auto set = [&](unsigned reg, double x) {
        const auto bits = std::bit_cast<std::uint64_t>(x);
        state.set_v(reg, static_cast<u32>(bits));
        state.set_v(reg + 1, static_cast<u32>(bits >> 32));
    };
    const auto result = [&](const char* text) {
        const WaveState after = run(text, state);
        return std::bit_cast<double>(after.v(0)[5] | std::uint64_t{after.v(1)[5]} << 32);
    };
    set(2, 1.0 / 3);
    set(4, -7.25);
    set(6, 1e-20);
    CHECK(result("v_add_f64 v[0:1], v[2:3], v[4:5]") == 1.0 / 3 - 7.25);
    CHECK(result("v_mul_f64 v[0:1], v[2:3], -v[4:5]") == 1.0 / 3 * 7.25);
    CHECK(result("v_fma_f64 v[0:1], v[2:3], v[4:5], v[6:7]") == std::fma(1.0 / 3, -7.25, 1e-20));
    CHECK(result("v_floor_f64_e32 v[0:1], v[4:5]") == -8.0);
    CHECK(result("v_ceil_f64_e32 v[0:1], v[4:5]") == -7.0);
    CHECK(result("v_trunc_f64_e32 v[0:1], v[4:5]") == -7.0);
    CHECK(result("v_min_f64 v[0:1], v[2:3], v[4:5]") == -7.25);
    CHECK(result("v_max_f64 v[0:1], v[2:3], v[4:5]") == 1.0 / 3);
    state.set_v(8, 10);
    CHECK(result("v_ldexp_f64 v[0:1], v[4:5], v8") == -7424.0);
    set(10, 2.5);
    CHECK(result("v_rndne_f64_e32 v[0:1], v[10:11]") == 2.0);
    set(10, 16.0);
    CHECK(result("v_sqrt_f64_e32 v[0:1], v[10:11]") == 4.0);
    CHECK(result("v_rsq_f64_e32 v[0:1], v[10:11]") == 0.25);
    CHECK(result("v_rcp_f64_e32 v[0:1], v[10:11]") == 1.0 / 16);
    set(0, 1e-20);
    CHECK(result("v_fmac_f64_e32 v[0:1], v[2:3], v[4:5]") == std::fma(1.0 / 3, -7.25, 1e-20));
    CHECK(one("v_cvt_f32_f64_e32 v0, v[2:3]", 0, 0x11111111, 0x3fd55555) ==
          b(static_cast<float>(std::bit_cast<double>(0x3fd5555511111111))));
    state.set_v(8, b(0.1f));
    CHECK(result("v_cvt_f64_f32_e32 v[0:1], v8") == double{0.1f});
    state.set_v(8, 0xfffffffe);
    CHECK(result("v_cvt_f64_i32_e32 v[0:1], v8") == -2.0);
    CHECK(result("v_cvt_f64_u32_e32 v[0:1], v8") == 4294967294.0);
}

TEST_CASE("isa: f16 arithmetic rounds once to f16 and clears the upper half") {
    Random random;
    CAPTURE(random.seed());
    const auto nearest = [](double x) {
        const u32 sign = std::signbit(x) ? 0x8000 : 0;
        const double magnitude = std::fabs(x);
        if (magnitude >= 65520)
            return sign | 0x7c00;
        u32 low = 0, high = 0x7c00;
        while (high - low > 1) {
            const u32 middle = (low + high) / 2;
            (kF16.value(middle) <= magnitude ? low : high) = middle;
        }
        const double above = (high == 0x7c00 ? 65536 : kF16.value(high)) - magnitude;
        const double below = magnitude - kF16.value(low);
        return sign | (above < below || (above == below && low % 2 == 1) ? high : low);
    };
    for (int round = 0; round < 20; ++round) {
        WaveState state;
        Lanes x{}, y{};
        for (unsigned lane = 0; lane < 64; ++lane) {
            const u32 range = lane % 2 == 0 ? 0x7bff : 0x43ff;  // any finite number, or a small one
            x[lane] = (random.bits() & 0xffff8000) | random.below(range);
            y[lane] = (random.bits() & 0xffff8000) | random.below(range);
        }
        state.set_v(1, x);
        state.set_v(2, y);
        const auto check = [&](const char* text, auto exact) {
            CAPTURE(text);
            const WaveState after = run(text, state);
            for (unsigned lane = 0; lane < 64; ++lane) {
                const double a = kF16.value(x[lane] & 0xffff), c = kF16.value(y[lane] & 0xffff);
                CAPTURE(a);
                CAPTURE(c);
                CHECK(after.v(0)[lane] == nearest(exact(a, c)));
            }
        };
        check("v_add_f16_e32 v0, v1, v2", [](double a, double c) { return a + c; });
        check("v_sub_f16_e32 v0, v1, v2", [](double a, double c) { return a - c; });
        check("v_subrev_f16_e32 v0, v1, v2", [](double a, double c) { return c - a; });
        check("v_mul_f16_e32 v0, v1, v2", [](double a, double c) { return a * c; });
        check("v_min_f16_e32 v0, v1, v2",
              [](double a, double c) { return a < c || (a == c && std::signbit(a)) ? a : c; });
        check("v_max_f16_e32 v0, v1, v2",
              [](double a, double c) { return a > c || (a == c && !std::signbit(a)) ? a : c; });
    }
}

TEST_CASE("isa: the legacy product gives zero for zero times anything") {
    CHECK(one("v_mul_legacy_f32_e32 v0, v1, v2", 0, kInf) == 0);
    CHECK(one("v_mul_legacy_f32_e32 v0, v1, v2", kNan, 0x80000000) == 0);
    CHECK(one("v_mul_legacy_f32_e32 v0, v1, v2", b(3.0f), b(4.0f)) == b(12.0f));
}

TEST_CASE("isa: bf16 dot products") {
    const auto pair = [](float low, float high) { return b(low) >> 16 | (b(high) & 0xffff0000); };
    CHECK(one("v_dot2_f32_bf16 v0, v1, v2, v3", pair(2, 3), pair(4, 5), b(0.5f)) == b(23.5f));
    CHECK(one("v_dot2_f32_bf16 v0, v1, v2, v3", 0x00400040, pair(0x1p10f, 0x1p10f), 0) == 0);
    WaveState state;
    state.set_v(0, b(0.5f));
    state.set_v(1, pair(2, 3));
    state.set_v(2, pair(4, 5));
    CHECK(run("v_dot2c_f32_bf16_e32 v0, v1, v2", state).v(0)[63] == b(23.5f));
}
