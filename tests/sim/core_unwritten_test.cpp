// Memory that nothing wrote and memory that was freed: planted faults are found, with the instructions that
// read and used it, and what is right passes.
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <numeric>
#include <string>

#include <fmt/format.h>

#include "core_support.hpp"
#include "runtime/sim/checks.hpp"
#include "runtime/sim/wave_run.hpp"

namespace kiln::sim_test {
namespace {

using Contents = sim::Memory::Contents;
using sim::Lanes;
using sim::WaveState;

constexpr const char* kSource = R"(
extern "C" __global__ void add_one(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] + 1;
}
extern "C" __global__ void wide(const int4* in, int* out, int n) {
    int4 v = in[threadIdx.x];
    out[threadIdx.x] = n == 3 ? v.x : v.w;
}
extern "C" __global__ void uniform(const int* in, int* out) {
    if (in[2] > 5) out[threadIdx.x] = in[0];
}
extern "C" __global__ void count(unsigned* counter) { atomicAdd(counter, 1u); }
extern "C" __global__ void elect(unsigned* counter, int* out) {
    if (atomicAdd(counter, 1u) == 63) out[0] = 1;
}
extern "C" __global__ void exchange(unsigned* slot) { atomicExch(slot, 7u); }
extern "C" __global__ void bytes(const unsigned char* in, unsigned char* out) {
    out[threadIdx.x] = in[threadIdx.x];
}
)";

const compile::CompileResult& built() {
    static const compile::CompileResult result = compile_hip(kSource);
    return result;
}

TEST_CASE("unwritten: what was loaded from nowhere is not to be stored") {
    Bench bench(built());
    const auto in = bench.allocate<int>(256, Contents::unwritten), out = bench.allocate<int>(256);
    const auto arguments = Arguments() << in.data() << out.data() << 256;
    bench.memory().note_written(in.data(), 100 * sizeof(int));
    const std::string message = bench.run_badly("add_one", {1}, {256}, arguments);
    CAPTURE(message);
    CHECK(contains(message, "'global_store_dword"));  // where it mattered
    CHECK(contains(message, "wave 1, lane 36"));
    CHECK(contains(message, "the data to store is undefined: it depends on memory at"));
    CHECK(contains(message, fmt::format("{:#x}, never written", reinterpret_cast<std::uintptr_t>(&in[100]))));
    CHECK(contains(message, "which 'global_load_dword"));  // what read it

    bench.memory().note_written(in.data() + 100, 156 * sizeof(int));
    std::iota(in.begin(), in.end(), 0);
    bench.run_well("add_one", {1}, {256}, arguments);
    CHECK(out[255] == 256);
    bench.memory().forget_written(in.data() + 255, 1);
    CHECK(contains(bench.run_badly("add_one", {1}, {256}, arguments), "wave 3, lane 63"));
}

TEST_CASE("unwritten: a kernel writes what the next one reads") {
    Bench bench(built());
    const auto in = bench.upload(std::vector<int>(128, 5));
    const auto middle = bench.allocate<int>(128, Contents::unwritten), out = bench.allocate<int>(128);
    bench.run_well("add_one", {1}, {100}, Arguments() << in.data() << middle.data() << 100);
    bench.run_well("add_one", {1}, {128}, Arguments() << middle.data() << out.data() << 100);
    CHECK(out[99] == 7);
    CHECK(contains(bench.run_badly("add_one", {1}, {128}, Arguments() << middle.data() << out.data() << 101),
                   "never written"));
}

TEST_CASE("unwritten: a wide load of which only written parts are used") {
    Bench bench(built());
    const auto in = bench.allocate<std::array<int, 4>>(64, Contents::unwritten);
    const auto out = bench.allocate<int>(64);
    for (auto& item : in) {
        item[0] = 9;
        bench.memory().note_written(item.data(), 4);
    }
    bench.run_well("wide", {1}, {64}, Arguments() << in.data() << out.data() << 3);
    CHECK(out[63] == 9);
    CHECK(contains(bench.run_badly("wide", {1}, {64}, Arguments() << in.data() << out.data() << 2),
                   "never written"));
}

TEST_CASE("unwritten: scalar loads, bytes, and a branch") {
    Bench bench(built());
    const auto in = bench.allocate<int>(4, Contents::unwritten), out = bench.allocate<int>(64);
    std::fill(in.begin(), in.end(), 8);
    bench.memory().note_written(in.data(), 8);
    const std::string message = bench.run_badly("uniform", {1}, {64}, Arguments() << in.data() << out.data());
    CAPTURE(message);
    CHECK(contains(message, "SCC is undefined"));
    CHECK(contains(message, "never written, which 's_load_dword"));
    bench.memory().note_written(in.data() + 2, 4);
    bench.run_well("uniform", {1}, {64}, Arguments() << in.data() << out.data());
    CHECK(out[5] == 8);

    const auto from = bench.allocate<std::uint8_t>(64, Contents::unwritten);
    const auto to = bench.allocate<std::uint8_t>(64);
    bench.memory().note_written(from.data(), 63);
    CHECK(contains(bench.run_badly("bytes", {1}, {64}, Arguments() << from.data() << to.data()), "lane 63"));
    bench.run_well("bytes", {1}, {63}, Arguments() << from.data() << to.data());
}

TEST_CASE("unwritten: a counter that nobody set") {
    Bench bench(built());
    const auto counter = bench.allocate<unsigned>(1, Contents::unwritten);
    counter[0] = 0;
    const auto out = bench.upload<int>({0});
    // Nobody looks at the sum.
    bench.run_well("count", {1}, {64}, Arguments() << counter.data());
    const auto arguments = Arguments() << counter.data() << out.data();
    const std::string message = bench.run_badly("elect", {1}, {64}, arguments);
    CAPTURE(message);
    CHECK(contains(message, "is undefined: it depends on memory at"));
    CHECK(contains(message, "never written, which 'global_atomic_add"));
    bench.run_well("exchange", {1}, {64}, Arguments() << counter.data());
    bench.run_well("elect", {1}, {64}, arguments);
}

TEST_CASE("unwritten: buffers and loads straight to LDS") {
    sim::Memory memory(1 << 20);
    auto* words = static_cast<std::uint32_t*>(*memory.allocate(64 * 16, Contents::unwritten));
    std::memset(words, 1, 64 * 16);
    memory.note_written(words, 64 * 16 - 4);
    WaveState state;
    state.set_s64(4, reinterpret_cast<std::uint64_t>(words));
    state.set_s(6, 64 * 16);
    state.set_s(7, 0x00020000);
    state.m0 = 0;
    state.lds_unwritten = 2048;
    Lanes offset{};
    for (unsigned lane = 0; lane < 64; ++lane) {
        offset[lane] = 16 * lane;
    }
    state.set_v(0, offset);
    const std::string load = "buffer_load_dwordx4 v[1:4], v0, s[4:7], 0 offen";
    auto after = sim::run_wave(load, state, &memory);
    REQUIRE(after.has_value());
    CHECK_FALSE(after->vgpr_undefined.contains(3));
    CHECK(after->vgpr_undefined.at(4) == std::uint64_t{1} << 63);
    // Dwords past the end are zeros and defined; the one that is in reach is the unwritten one.
    for (auto& lane : offset) {
        lane += 12;
    }
    state.set_v(0, offset);
    after = sim::run_wave(load, state, &memory);
    REQUIRE(after.has_value());
    CHECK(after->vgpr_undefined.at(1) == std::uint64_t{1} << 63);
    CHECK(after->v(2)[63] == 0);
    CHECK_FALSE(after->vgpr_undefined.contains(2));

    for (unsigned lane = 0; lane < 64; ++lane) {
        offset[lane] = 16 * lane;
    }
    state.set_v(0, offset);
    const std::string through = "buffer_load_dwordx4 v0, s[4:7], 0 offen lds\nds_read_b128 v[1:4], v0";
    after = sim::run_wave(through, state, &memory);
    REQUIRE_MESSAGE(after.has_value(), (after ? std::string{} : after.error().message));
    CHECK_FALSE(after->vgpr_undefined.contains(3));
    CHECK(after->vgpr_undefined.at(4) == std::uint64_t{1} << 63);
}

TEST_CASE("unwritten: copies carry what is known, and a whole fill ends the matter") {
    sim::Memory memory(1 << 20), other(1 << 20);
    auto* from = static_cast<std::byte*>(*memory.allocate(64, Contents::unwritten));
    auto* to = static_cast<std::byte*>(*other.allocate(64));
    const auto written = [](const sim::Memory& where, const std::byte* p) {
        const auto range = where.find(reinterpret_cast<std::uintptr_t>(p));
        return range.written == nullptr || *range.written_at(reinterpret_cast<std::uintptr_t>(p)) != 0;
    };
    memory.note_written(from, 32);
    other.note_copied(to, &memory, from + 16, 32);
    CHECK(written(other, to + 15));
    CHECK_FALSE(written(other, to + 16));
    CHECK_FALSE(written(other, to + 31));
    CHECK(written(other, to + 32));
    other.note_copied(to + 16, nullptr, nullptr, 16);
    CHECK(other.find(reinterpret_cast<std::uintptr_t>(to)).written == nullptr);
    memory.note_written(from, 64);
    CHECK(memory.find(reinterpret_cast<std::uintptr_t>(from)).written == nullptr);
    memory.forget_written(from + 63, 1);
    CHECK(written(memory, from + 62));
    CHECK_FALSE(written(memory, from + 63));
}

TEST_CASE("unwritten: not looked for when the check is off") {
    sim::Memory memory(1 << 20, {.uninitialised = false});
    const auto pointer = memory.allocate(64, Contents::unwritten);
    REQUIRE(pointer.has_value());
    memory.forget_written(*pointer, 64);
    CHECK(memory.find(reinterpret_cast<std::uintptr_t>(*pointer)).written == nullptr);
}

TEST_CASE("freed: who still uses it is told so, and nobody is given it again") {
    Bench bench(built());
    const auto in = bench.upload(std::vector<int>(64, 1)), out = bench.allocate<int>(64);
    REQUIRE(bench.memory().free(in.data()).has_value());
    for (int n = 0; n < 100; ++n) {
        const auto next = bench.allocate<int>(64);
        CHECK(next.data() != in.data());
        REQUIRE(bench.memory().free(next.data()).has_value());
    }
    const std::string message =
        bench.run_badly("add_one", {1}, {64}, Arguments() << in.data() + 3 << out.data() << 61);
    CAPTURE(message);
    CHECK(contains(message, "'global_load_dword"));
    CHECK(contains(message, "inside of an allocation that was freed: 256 bytes at"));
    const auto again = bench.memory().free(in.data());
    REQUIRE_FALSE(again.has_value());
    CHECK(contains(again.error().message, "it was freed"));
}

TEST_CASE("freed: memory is kept apart for a while, not for ever, and takes no room") {
    sim::Memory memory(1 << 20);
    void* first = *memory.allocate(1 << 19);
    REQUIRE(memory.free(first).has_value());
    CHECK(memory.find_freed(reinterpret_cast<std::uintptr_t>(first) + 5).has_value());
    for (int n = 0; n < 5000; ++n) {
        const auto pointer = memory.allocate(1 << 19);
        REQUIRE(pointer.has_value());
        REQUIRE(memory.free(*pointer).has_value());
    }
    CHECK(memory.used_bytes() == 0);
    sim::Memory plain(1 << 20, {.freed = false});
    first = *plain.allocate(64);
    REQUIRE(plain.free(first).has_value());
    CHECK_FALSE(plain.find_freed(reinterpret_cast<std::uintptr_t>(first)).has_value());
}

TEST_CASE("checks: by name") {
    CHECK(*sim::parse_checks("all") == sim::Checks::all());
    CHECK(*sim::parse_checks("none") == sim::Checks::none());
    CHECK(*sim::parse_checks("races") == sim::Checks{true, false, false});
    CHECK(*sim::parse_checks("freed,uninitialised") == sim::Checks{false, true, true});
    for (const char* text : {"", "race", "races,", "all,races"}) {
        const auto parsed = sim::parse_checks(text);
        REQUIRE_FALSE(parsed.has_value());
        CHECK(contains(parsed.error().message, "expected all, none"));
    }
}

}  // namespace
}  // namespace kiln::sim_test
