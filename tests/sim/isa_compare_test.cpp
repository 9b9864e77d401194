// Every vector comparison: each condition on each type, written to VCC, to scalars, and as v_cmpx to EXEC
// too.
#include <cstring>

#include "tests/sim/isa_support.hpp"

using namespace kiln::sim;
using namespace kiln::sim::test;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

namespace {

// How two numbers lie to each other; NaN makes them unordered.
enum Relation : unsigned { less = 1, equal = 2, greater = 4, unordered = 8 };

struct Condition {
    const char* name;
    unsigned holds;  // the relations for which it is true
};
const Condition kOfIntegers[] = {
    {"f", 0},        {"lt", less},           {"eq", equal},           {"le", less | equal},
    {"gt", greater}, {"ne", less | greater}, {"ge", greater | equal}, {"t", 15}};
const Condition kOfFloats[] = {{"f", 0},
                               {"lt", less},
                               {"eq", equal},
                               {"le", less | equal},
                               {"gt", greater},
                               {"lg", less | greater},
                               {"ge", greater | equal},
                               {"o", less | equal | greater},
                               {"u", unordered},
                               {"nge", less | unordered},
                               {"nlg", equal | unordered},
                               {"ngt", less | equal | unordered},
                               {"nle", greater | unordered},
                               {"neq", less | greater | unordered},
                               {"nlt", equal | greater | unordered},
                               {"tru", 15}};

template <class T>
Relation relation(T x, T y) {
    return x < y ? less : x == y ? equal : x > y ? greater : unordered;
}
template <class T>
T low_part(u64 bits) {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

template <class T, class Conditions>
void check_type(const char* type, const Conditions& conditions, std::initializer_list<T> edges) {
    Random random;
    CAPTURE(random.seed());
    WaveState state;
    state.exec = 0xfffffffffffffff7 & ~(u64{random.bits()} << 20 & 0xff00000);
    u64 x[64], y[64];
    Lanes parts[4] = {};
    for (unsigned lane = 0; lane < 64; ++lane) {
        const auto pick = [&]() -> u64 {
            if (random.below(4) == 0)
                return random.bits() | u64{random.bits()} << 32;
            u64 bits = u64{random.bits()} << 32 | random.bits();  // above a 16-bit number: noise
            const T edge = *(edges.begin() + random.below(static_cast<unsigned>(edges.size())));
            std::memcpy(&bits, &edge, sizeof edge);
            return bits;
        };
        x[lane] = pick();
        y[lane] = random.below(3) == 0 ? x[lane] : pick();
        parts[0][lane] = static_cast<u32>(x[lane]);
        parts[1][lane] = static_cast<u32>(x[lane] >> 32);
        parts[2][lane] = static_cast<u32>(y[lane]);
        parts[3][lane] = static_cast<u32>(y[lane] >> 32);
    }
    for (unsigned i = 0; i < 4; ++i)
        state.set_v(2 + i, parts[i]);
    const std::string operands = sizeof(T) == 8 ? "v[2:3], v[4:5]" : "v2, v4";
    for (const Condition& condition : conditions) {
        u64 expected = 0;
        for (unsigned lane = 0; lane < 64; ++lane) {
            const bool holds = (condition.holds & relation(low_part<T>(x[lane]), low_part<T>(y[lane]))) != 0;
            expected |= u64{holds} << lane;
        }
        expected &= state.exec;  // masked lanes give 0
        const std::string name = std::string(condition.name) + "_" + type;
        CAPTURE(name);
        const WaveState vcc = run("v_cmp_" + name + "_e32 vcc, " + operands, state);
        CHECK(*vcc.vcc == expected);
        CHECK(vcc.exec == state.exec);
        CHECK(run("v_cmp_" + name + "_e64 s[10:11], " + operands, state).s64(10) == expected);
        const WaveState narrowed = run("v_cmpx_" + name + "_e64 s[10:11], " + operands, state);
        CHECK(narrowed.s64(10) == expected);
        CHECK(narrowed.exec == expected);
    }
}

}  // namespace

TEST_CASE("isa: every comparison of every integer type") {
    for (int round = 0; round < 4; ++round) {
        check_type<std::int16_t>("i16", kOfIntegers, {0, 1, -1, 0x7fff, -0x8000});
        check_type<std::uint16_t>("u16", kOfIntegers, {0, 1, 0x7fff, 0x8000, 0xffff});
        check_type<std::int32_t>("i32", kOfIntegers, {0, 1, -1, 0x7fffffff, -0x7fffffff - 1});
        check_type<std::uint32_t>("u32", kOfIntegers, {0, 1, 0x7fffffff, 0x80000000, 0xffffffff});
        check_type<std::int64_t>(
            "i64", kOfIntegers,
            {0, 1, -1, std::int64_t{1} << 32, -(std::int64_t{1} << 32), INT64_MAX, INT64_MIN});
        check_type<std::uint64_t>("u64", kOfIntegers, {0, 1, u64{1} << 32, u64{1} << 63, ~u64{0}});
    }
}

TEST_CASE("isa: every comparison of every float type") {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    for (int round = 0; round < 4; ++round) {
        check_type<float>("f32", kOfFloats, {0.0f, -0.0f, 1.0f, -1.0f, 1e-45f, kInf, -kInf, kNan});
        check_type<double>("f64", kOfFloats,
                           {0.0, -0.0, 1.0, -1.0, 5e-324, double{kInf}, -double{kInf}, double{kNan}});
    }
}

TEST_CASE("isa: comparisons take modifiers and constants") {
    WaveState state;
    state.set_v(1, as_bits(-2.0f));
    state.set_s(3, as_bits(2.0f));
    const auto all = [&](const char* text) { return run(text, state).s64(4) == ~u64{0}; };
    CHECK(all("v_cmp_eq_f32_e64 s[4:5], |v1|, 2.0"));
    CHECK(all("v_cmp_eq_f32_e64 s[4:5], -v1, s3"));
    CHECK(all("v_cmp_gt_f32_e64 s[4:5], 0, v1"));
    CHECK(all("v_cmp_class_f32_e64 s[4:5], -v1, 0x100"));
    state.set_v(2, 0);
    state.set_v(3, 0xbff00000);  // -1.0
    state.set_v(4, 0x8);         // negative normal
    CHECK(*run("v_cmp_class_f64_e32 vcc, v[2:3], v4", state).vcc == ~u64{0});
    state.exec = 0xff;
    CHECK(run("v_cmpx_class_f64_e32 vcc, v[2:3], v4", state).exec == 0xff);
    state.set_v(4, 0x100);
    CHECK(run("v_cmpx_class_f64_e32 vcc, v[2:3], v4", state).exec == 0);
    CHECK(run("v_cmpx_class_f32_e32 vcc, v1, v4", state).exec == 0);
}
