// Memory: allocation, and every width of access against plain host memory.
#include <doctest/doctest.h>

#include <cstring>
#include <numeric>
#include <string>

#include "core_support.hpp"
#include "runtime/sim/wave_run.hpp"

namespace kiln::sim_test {
namespace {

using sim::Lanes;
using sim::WaveState;

WaveState run(const std::string& text, const WaveState& state, const sim::Memory& memory) {
    auto after = sim::run_wave(text, state, &memory);
    REQUIRE_MESSAGE(after.has_value(), (after ? std::string{} : after.error().message));
    return std::move(*after);
}

// Each lane's address in v[low:low+1].
void set_addresses(WaveState& state, unsigned low, const void* base, std::size_t stride) {
    Lanes first{}, second{};
    for (unsigned lane = 0; lane < 64; ++lane) {
        const auto address = reinterpret_cast<std::uint64_t>(base) + lane * stride;
        first[lane] = static_cast<std::uint32_t>(address);
        second[lane] = static_cast<std::uint32_t>(address >> 32);
    }
    state.set_v(low, first);
    state.set_v(low + 1, second);
}

Lanes random_lanes() {
    Lanes lanes{};
    for (auto& lane : lanes) {
        lane = static_cast<std::uint32_t>(random()());
    }
    return lanes;
}

void fill_random(std::uint8_t* bytes, std::size_t count) {
    for (std::size_t n = 0; n < count; ++n) {
        bytes[n] = static_cast<std::uint8_t>(random()());
    }
}

TEST_CASE("memory: allocations are aligned, counted and apart") {
    sim::Memory memory(4096);
    const auto a = memory.allocate(100), b = memory.allocate(300);
    REQUIRE(a.has_value());
    REQUIRE(b.has_value());
    const auto at = reinterpret_cast<std::uintptr_t>(*a);
    CHECK(at % 256 == 0);
    CHECK(memory.used_bytes() == 400);
    CHECK(memory.find(at).contains(at + 99, 1));
    CHECK(memory.find(at + 100).end == 0);
    CHECK(memory.find(at - 1).end == 0);
    CHECK_FALSE(memory.allocate(4000).has_value());
    CHECK_FALSE(memory.free(static_cast<char*>(*a) + 1).has_value());
    CHECK(memory.free(nullptr).has_value());
    CHECK(memory.free(*a).has_value());
    CHECK_FALSE(memory.free(*a).has_value());
    CHECK(memory.find(at).end == 0);
    CHECK(memory.used_bytes() == 300);
    int host[4] = {};
    memory.admit(host, sizeof host);
    CHECK(memory.find(reinterpret_cast<std::uintptr_t>(host) + 15)
              .contains(reinterpret_cast<std::uintptr_t>(host), 16));
    memory.withdraw(host);
    CHECK(memory.find(reinterpret_cast<std::uintptr_t>(host)).end == 0);
}

TEST_CASE("memory: global loads of every width") {
    sim::Memory memory(1 << 20);
    auto* bytes = static_cast<std::uint8_t*>(*memory.allocate(64 * 16));
    fill_random(bytes, 64 * 16);
    WaveState state;
    set_addresses(state, 0, bytes, 16);
    state.set_v(20, 0xaaaabbbb);
    const auto word = [&](unsigned lane, unsigned n) {
        std::uint32_t value;
        std::memcpy(&value, bytes + lane * 16 + 4 * n, 4);
        return value;
    };
    const auto after =
        run("global_load_dword v2, v[0:1], off offset:4\nglobal_load_dwordx2 v[4:5], v[0:1], off nt\n"
            "global_load_dwordx3 v[6:8], v[0:1], off sc0 sc1\nglobal_load_dwordx4 v[9:12], v[0:1], off\n"
            "global_load_ubyte v13, v[0:1], off offset:3\nglobal_load_sbyte v14, v[0:1], off offset:3\n"
            "global_load_ushort v15, v[0:1], off offset:2\nglobal_load_sshort v16, v[0:1], off offset:2\n"
            "v_mov_b32_e32 v17, v20\nglobal_load_short_d16 v17, v[0:1], off\n"
            "v_mov_b32_e32 v18, v20\nglobal_load_ubyte_d16_hi v18, v[0:1], off\n"
            "flat_load_dword v19, v[0:1] offset:8",
            state, memory);
    for (unsigned lane = 0; lane < 64; ++lane) {
        CAPTURE(lane);
        const std::uint8_t* b = bytes + lane * 16;
        REQUIRE(after.v(2)[lane] == word(lane, 1));
        REQUIRE(after.v(5)[lane] == word(lane, 1));
        REQUIRE(after.v(8)[lane] == word(lane, 2));
        for (unsigned n = 0; n < 4; ++n) {
            REQUIRE(after.v(9 + n)[lane] == word(lane, n));
        }
        REQUIRE(after.v(13)[lane] == b[3]);
        REQUIRE(after.v(14)[lane] == static_cast<std::uint32_t>(static_cast<std::int8_t>(b[3])));
        REQUIRE(after.v(15)[lane] == word(lane, 0) >> 16);
        REQUIRE(after.v(16)[lane] ==
                static_cast<std::uint32_t>(static_cast<std::int32_t>(word(lane, 0)) >> 16));
        REQUIRE(after.v(17)[lane] == (0xaaaa0000 | (word(lane, 0) & 0xffff)));
        REQUIRE(after.v(18)[lane] == (0xbbbb | std::uint32_t{b[0]} << 16));
        REQUIRE(after.v(19)[lane] == word(lane, 2));
    }
}

TEST_CASE("memory: scalar base, vector offset, negative immediate; inactive lanes do nothing") {
    sim::Memory memory(1 << 20);
    auto* words = static_cast<std::uint32_t*>(*memory.allocate(64 * 4));
    std::iota(words, words + 64, 1000);
    WaveState state;
    state.set_s64(2, reinterpret_cast<std::uint64_t>(words));
    Lanes offset{};
    for (unsigned lane = 0; lane < 64; ++lane) {
        offset[lane] = lane < 32 ? 4 * lane + 4 : 0xffffff00;
    }
    state.set_v(1, offset);
    state.set_v(0, 7);
    state.exec = 0xffffffff;
    const auto after =
        run("global_load_dword v0, v1, s[2:3] offset:-4\nglobal_store_dword v1, v0, s[2:3] offset:124", state,
            memory);
    for (unsigned lane = 0; lane < 64; ++lane) {
        REQUIRE(after.v(0)[lane] == (lane < 32 ? 1000 + lane : 7));
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
        REQUIRE(words[32 + lane] == 1000 + lane);
    }
}

TEST_CASE("memory: buffers return zero past their end and drop stores there") {
    sim::Memory memory(1 << 20);
    auto* words = static_cast<std::uint32_t*>(*memory.allocate(64 * 4));
    std::iota(words, words + 64, 1);
    WaveState state;
    const auto base = reinterpret_cast<std::uint64_t>(words);
    state.set_s64(4, base);
    state.set_s(6, 40 * 4);  // bytes that the buffer has
    state.set_s(7, 0x00020000);
    state.set_s(8, 4);
    Lanes offset{};
    for (unsigned lane = 0; lane < 64; ++lane) {
        offset[lane] = 4 * lane;
    }
    state.set_v(0, offset);
    state.set_v(9, 77);
    const auto after =
        run("buffer_load_dwordx4 v[1:4], v0, s[4:7], 0 offen\n"
            "buffer_load_dword v5, v0, s[4:7], s8 offen offset:4\nbuffer_load_dword v6, off, s[4:7], 0\n"
            "buffer_load_ubyte v7, v0, s[4:7], 0 offen\n"
            "buffer_store_dword v9, v0, s[4:7], 0 offen offset:128",
            state, memory);
    for (unsigned lane = 0; lane < 64; ++lane) {
        CAPTURE(lane);
        for (unsigned n = 0; n < 4; ++n) {
            REQUIRE(after.v(1 + n)[lane] == (lane + n < 40 ? lane + n + 1 : 0));
        }
        // soffset is no part of the range check.
        REQUIRE(after.v(5)[lane] == (lane + 1 < 40 ? lane + 3 : 0));
        REQUIRE(after.v(6)[lane] == 1);
        REQUIRE(after.v(7)[lane] == (lane < 40 ? lane + 1 : 0));
        REQUIRE(words[lane] == (lane >= 32 && lane < 40 ? 77 : lane + 1));
    }
}

TEST_CASE("memory: scalar loads") {
    sim::Memory memory(1 << 20);
    auto* words = static_cast<std::uint32_t*>(*memory.allocate(128));
    std::iota(words, words + 32, 500);
    WaveState state;
    state.set_s64(2, reinterpret_cast<std::uint64_t>(words));
    state.set_s(20, 16);
    state.set_s64(24, reinterpret_cast<std::uint64_t>(words));
    state.set_s(26, 12);
    state.set_s(27, 0x00020000);
    const auto after =
        run("s_load_dwordx8 s[8:15], s[2:3], 0x20\ns_load_dword s4, s[2:3], s20\n"
            "s_load_dword s5, s[2:3], s20 offset:0x8\ns_buffer_load_dwordx4 s[28:31], s[24:27], 0x4",
            state, memory);
    for (unsigned n = 0; n < 8; ++n) {
        CHECK(after.s(8 + n) == 508 + n);
    }
    CHECK(after.s(4) == 504);
    CHECK(after.s(5) == 506);
    CHECK(after.s(29) == 502);
    CHECK(after.s(30) == 0);
}

TEST_CASE("memory: stores of every width") {
    sim::Memory memory(1 << 20);
    auto* bytes = static_cast<std::uint8_t*>(*memory.allocate(64 * 16));
    std::memset(bytes, 0, 64 * 16);
    WaveState state;
    set_addresses(state, 0, bytes, 16);
    Lanes data[4];
    for (unsigned n = 0; n < 4; ++n) {
        data[n] = random_lanes();
        state.set_v(4 + n, data[n]);
    }
    const auto check = [&](const std::string& text, auto&& expected) {
        CAPTURE(text);
        std::memset(bytes, 0, 64 * 16);
        run(text, state, memory);
        for (unsigned lane = 0; lane < 64; ++lane) {
            std::uint8_t want[16] = {};
            expected(lane, want);
            REQUIRE(std::memcmp(want, bytes + lane * 16, 16) == 0);
        }
    };
    const auto put = [&](unsigned dwords, unsigned at) {
        return [&, dwords, at](unsigned lane, std::uint8_t* want) {
            for (unsigned n = 0; n < dwords; ++n) {
                std::memcpy(want + at + 4 * n, &data[n][lane], 4);
            }
        };
    };
    check("global_store_dword v[0:1], v4, off offset:8", put(1, 8));
    check("global_store_dwordx2 v[0:1], v[4:5], off offset:4", put(2, 4));
    check("global_store_dwordx3 v[0:1], v[4:6], off", put(3, 0));
    check("global_store_dwordx4 v[0:1], v[4:7], off", put(4, 0));
    check("global_store_byte v[0:1], v4, off offset:5",
          [&](unsigned lane, std::uint8_t* want) { std::memcpy(want + 5, &data[0][lane], 1); });
    check("global_store_short v[0:1], v4, off offset:2",
          [&](unsigned lane, std::uint8_t* want) { std::memcpy(want + 2, &data[0][lane], 2); });
    check("global_store_short_d16_hi v[0:1], v4, off", [&](unsigned lane, std::uint8_t* want) {
        const auto high = static_cast<std::uint16_t>(data[0][lane] >> 16);
        std::memcpy(want, &high, 2);
    });
}

TEST_CASE("memory: LDS, one and two at a time") {
    sim::Memory memory(1 << 20);
    WaveState state;
    state.lds_unwritten = 64 * 64 + 8192;
    Lanes address{};
    for (unsigned lane = 0; lane < 64; ++lane) {
        address[lane] = 64 * lane;
    }
    state.set_v(0, address);
    Lanes data[4];
    for (unsigned n = 0; n < 4; ++n) {
        data[n] = random_lanes();
        state.set_v(4 + n, data[n]);
    }
    const auto after =
        run("ds_write_b128 v0, v[4:7]\nds_write2_b32 v0, v4, v5 offset0:4 offset1:6\n"
            "ds_write_b8 v0, v4 offset:32\nds_write_b16_d16_hi v0, v5 offset:34\n"
            "ds_write2_b64 v0, v[4:5], v[6:7] offset0:5 offset1:6\nds_write_b8 v0, v4 offset:33\n"
            "ds_read_b128 v[12:15], v0\nds_read2_b32 v[16:17], v0 offset0:4 offset1:6\n"
            "ds_read_u8 v18, v0 offset:32\nds_read_i16 v19, v0 offset:34\n"
            "ds_read_b96 v[20:22], v0 offset:4\nds_read2_b64 v[24:27], v0 offset0:6 offset1:5\n"
            "v_mov_b32_e32 v28, v0\nds_read2_b32 v[28:29], v28 offset0:1 offset1:2",
            state, memory);
    for (unsigned lane = 0; lane < 64; ++lane) {
        CAPTURE(lane);
        for (unsigned n = 0; n < 4; ++n) {
            REQUIRE(after.v(12 + n)[lane] == data[n][lane]);
        }
        REQUIRE(after.v(16)[lane] == data[0][lane]);
        REQUIRE(after.v(17)[lane] == data[1][lane]);
        REQUIRE(after.v(18)[lane] == (data[0][lane] & 0xff));
        REQUIRE(after.v(19)[lane] ==
                static_cast<std::uint32_t>(static_cast<std::int32_t>(data[1][lane]) >> 16));
        for (unsigned n = 0; n < 3; ++n) {
            REQUIRE(after.v(20 + n)[lane] == data[1 + n][lane]);
        }
        REQUIRE(after.v(24)[lane] == data[2][lane]);
        REQUIRE(after.v(27)[lane] == data[1][lane]);
        // The destination may hold the address.
        REQUIRE(after.v(28)[lane] == data[1][lane]);
        REQUIRE(after.v(29)[lane] == data[2][lane]);
    }
}

TEST_CASE("memory: read-modify-write, with and without the old value") {
    sim::Memory memory(1 << 20);
    auto* words = static_cast<std::uint32_t*>(*memory.allocate(64 * 8));
    for (unsigned n = 0; n < 128; ++n) {
        words[n] = n;
    }
    WaveState state;
    set_addresses(state, 0, words, 4);
    set_addresses(state, 2, words, 0);
    state.set_v(4, 3);
    state.set_v(5, 0x3f800000);
    state.set_v(6, 0);
    state.lds = Bytes(16);
    const auto after =
        run("global_atomic_add v[0:1], v4, off\nglobal_atomic_add v7, v[2:3], v4, off sc0\n"
            "global_atomic_umax v[0:1], v4, off offset:4\nds_add_u32 v6, v4\n"
            "ds_add_rtn_u32 v8, v6, v4\nds_max_rtn_u32 v9, v6, v4 offset:8",
            state, memory);
    for (unsigned lane = 0; lane < 64; ++lane) {
        CAPTURE(lane);
        // All lanes add to the first word, one after the other.
        REQUIRE(after.v(7)[lane] == 3 + 3 * lane);
        REQUIRE(after.v(8)[lane] == 3 * 64 + 3 * lane);
        REQUIRE(after.v(9)[lane] == (lane == 0 ? 0 : 3));
    }
    CHECK(words[0] == 3 + 64 * 3);
    CHECK(words[63] == 66);
    std::uint32_t lds[2];
    std::memcpy(lds, after.lds.data(), sizeof lds);
    CHECK(lds[0] == 2 * 64 * 3);
}

TEST_CASE("memory: loads that go straight to LDS") {
    sim::Memory memory(1 << 20);
    auto* bytes = static_cast<std::uint8_t*>(*memory.allocate(64 * 16));
    fill_random(bytes, 64 * 16);
    WaveState state;
    set_addresses(state, 0, bytes, 16);
    state.m0 = 32;
    state.lds_unwritten = 2048;
    const auto after = run("global_load_lds_dwordx4 v[0:1], off", state, memory);
    CHECK(std::memcmp(after.lds.data() + 32, bytes, 64 * 16) == 0);
}

}  // namespace
}  // namespace kiln::sim_test
