// What the instruction tests share: one instruction, as a listing writes it, on one wave with known
// registers.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <initializer_list>
#include <string>

#include "runtime/sim/wave_run.hpp"
#include "tests/sim/numeric_support.hpp"

namespace kiln::sim::test {

// Runs and returns the registers afterwards; a failure of the run fails the test with its message.
inline WaveState run(const std::string& text, const WaveState& before, const Memory* memory = nullptr) {
    auto after = run_wave(text, before, memory);
    if (!after) {
        const std::string message = after.error().message;
        CAPTURE(text);
        CAPTURE(message);
        REQUIRE(after.has_value());
    }
    return *std::move(after);
}

inline bool fails(const std::string& text, const WaveState& before, const Memory* memory = nullptr) {
    return !run_wave(text, before, memory).has_value();
}

// Numbers at which integer and float instructions change their behaviour, one a lane, the rest random.
inline Lanes edge_lanes(Random& random) {
    static constexpr std::uint32_t kEdges[] = {
        0,          1,          2,          31,         32,         33,         63,         0x7f,
        0x80,       0xff,       0x7fff,     0x8000,     0xffff,     0x10000,    0x7fffff,   0x800000,
        0xffffff,   0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0x3f800000, 0xbf800000,
        0x3f000000, 0x7f800000, 0xff800000, 0x7f7fffff, 0x00400000};
    constexpr unsigned kNumEdges = sizeof kEdges / sizeof kEdges[0];
    Lanes lanes{};
    for (auto& lane : lanes)
        lane = random.below(2) == 0 ? kEdges[random.below(kNumEdges)] : random.bits();
    return lanes;
}

// Runs `text`, which writes v0 from v1, v2 and v3, a few times and compares every lane with `expected`.
// v0 holds v4's contents before.
template <class Expected>
void check_lanes(const std::string& text, Expected expected, int rounds = 4) {
    Random random;
    CAPTURE(text);
    CAPTURE(random.seed());
    for (int round = 0; round < rounds; ++round) {
        WaveState state;
        const Lanes x = edge_lanes(random), y = edge_lanes(random), z = edge_lanes(random),
                    old = edge_lanes(random);
        state.set_v(0, old);
        state.set_v(1, x);
        state.set_v(2, y);
        state.set_v(3, z);
        const WaveState after = run(text, state);
        for (unsigned lane = 0; lane < 64; ++lane) {
            CAPTURE(lane);
            CAPTURE(x[lane]);
            CAPTURE(y[lane]);
            CAPTURE(z[lane]);
            CAPTURE(old[lane]);
            const std::uint32_t want = expected(x[lane], y[lane], z[lane], old[lane]);
            REQUIRE(after.v(0)[lane] == want);
        }
    }
}

inline Lanes lane_numbers(std::uint32_t base = 0) {
    Lanes lanes{};
    for (unsigned lane = 0; lane < 64; ++lane)
        lanes[lane] = base + lane;
    return lanes;
}

}  // namespace kiln::sim::test
