// Loads, stores and atomics of one wave: widths, halves, signs, offsets, and what a masked lane or a range
// check leaves alone.
#include <cstring>

#include "tests/sim/isa_support.hpp"

using namespace kiln;
using namespace kiln::sim;
using namespace kiln::sim::test;
using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

namespace {

// A device buffer with bytes of a known pattern, and registers that point at it: lane l's own 64 bytes start
// at 64 * l.
struct Device {
    Memory memory{std::size_t{1} << 22};
    u8* data = nullptr;
    WaveState state;

    Device() {
        data = static_cast<u8*>(*memory.allocate(64 * 64));
        for (unsigned i = 0; i < 64 * 64; ++i)
            data[i] = pattern(i);
        Lanes low{}, high{}, offset{};
        for (unsigned lane = 0; lane < 64; ++lane) {
            const u64 address = reinterpret_cast<std::uintptr_t>(data) + 64 * lane;
            low[lane] = static_cast<u32>(address);
            high[lane] = static_cast<u32>(address >> 32);
            offset[lane] = 64 * lane;
        }
        state.set_v(2, low);
        state.set_v(3, high);
        state.set_v(4, offset);
        for (unsigned i = 0; i < 4; ++i) {
            state.set_v(8 + i, 0xa0b0c0d0 + i);  // old contents of a destination, or data to store
            state.set_v(12 + i, 0x11111111 * (i + 1));
        }
        const auto base = reinterpret_cast<std::uintptr_t>(data);
        state.set_s64(4, base);
        // A raw buffer: base, no stride, number of bytes, format word.
        state.set_s64(8, base);
        state.set_s(10, 64 * 64);
        state.set_s(11, 0x27000);
        state.set_s(12, 16);
    }
    static u8 pattern(unsigned i) { return static_cast<u8>(i * 37 + i / 64 * 11 + 128); }
    u32 word(unsigned at) const {
        u32 value;
        std::memcpy(&value, data + at, 4);
        return value;
    }
    WaveState go(const std::string& text) {
        return run(text + "\ns_waitcnt vmcnt(0) lgkmcnt(0)", state, &memory);
    }
};

u32 bytes(unsigned at, unsigned count) {
    u32 value = 0;
    for (unsigned i = 0; i < count; ++i)
        value |= u32{Device::pattern(at + i)} << (8 * i);
    return value;
}
u32 sign_extend(u32 value, unsigned bits) {
    return static_cast<u32>(static_cast<std::int32_t>(value << (32 - bits)) >> (32 - bits));
}

struct Width {
    const char* name;
    u32 (*value)(unsigned at, u32 old);
};
const Width kNarrowLoads[] = {
    {"ubyte", [](unsigned at, u32) { return bytes(at, 1); }},
    {"sbyte", [](unsigned at, u32) { return sign_extend(bytes(at, 1), 8); }},
    {"ushort", [](unsigned at, u32) { return bytes(at, 2); }},
    {"sshort", [](unsigned at, u32) { return sign_extend(bytes(at, 2), 16); }},
    {"ubyte_d16", [](unsigned at, u32 old) { return (old & 0xffff0000) | bytes(at, 1); }},
    {"ubyte_d16_hi", [](unsigned at, u32 old) { return (old & 0xffff) | bytes(at, 1) << 16; }},
    {"sbyte_d16",
     [](unsigned at, u32 old) { return (old & 0xffff0000) | (sign_extend(bytes(at, 1), 8) & 0xffff); }},
    {"sbyte_d16_hi",
     [](unsigned at, u32 old) { return (old & 0xffff) | sign_extend(bytes(at, 1), 8) << 16; }},
    {"short_d16", [](unsigned at, u32 old) { return (old & 0xffff0000) | bytes(at, 2); }},
    {"short_d16_hi", [](unsigned at, u32 old) { return (old & 0xffff) | bytes(at, 2) << 16; }},
    {"dword", [](unsigned at, u32) { return bytes(at, 4); }},
};

// How each family spells the address of lane l's bytes at +16.
struct Address {
    const char* prefix;
    const char* text;
};
const Address kAddresses[] = {{"global", "v[2:3], off offset:16"},
                              {"global", "v4, s[4:5] offset:16"},
                              {"flat", "v[2:3] offset:16"},
                              {"buffer", "v4, s[8:11], 0 offen offset:16"},
                              {"buffer", "v4, s[8:11], s12 offen"}};

std::string registers(unsigned first, unsigned count) {
    return count == 1 ? "v" + std::to_string(first)
                      : "v[" + std::to_string(first) + ":" + std::to_string(first + count - 1) + "]";
}
const char* width_name(unsigned dwords) {
    static const char* const kNames[] = {"", "dword", "dwordx2", "dwordx3", "dwordx4"};
    return kNames[dwords];
}
// Flat and global stores put the address first, buffers the data.
std::string store_text(const Address& address, const std::string& width, const std::string& data) {
    const std::string name = std::string(address.prefix) + "_store_" + width + " ";
    const std::string rest = address.text;
    if (std::string(address.prefix) == "buffer")
        return name + data + ", " + rest;
    const std::size_t end = rest[0] == 'v' && rest[1] == '[' ? rest.find(']') + 1 : rest.find(',');
    return name + rest.substr(0, end) + ", " + data + rest.substr(end);
}

}  // namespace

TEST_CASE("isa: loads of every width, from every kind of address") {
    for (const Address& address : kAddresses) {
        for (const Width& width : kNarrowLoads) {
            Device device;
            const std::string text =
                std::string(address.prefix) + "_load_" + width.name + " v8, " + address.text;
            CAPTURE(text);
            device.state.exec = 0xffffffff0fffffff;
            const WaveState after = device.go(text);
            for (unsigned lane = 0; lane < 64; ++lane) {
                const bool active = device.state.exec >> lane & 1;
                CHECK(after.v(8)[lane] == (active ? width.value(64 * lane + 16, 0xa0b0c0d0) : 0xa0b0c0d0));
            }
        }
        for (unsigned dwords = 2; dwords <= 4; ++dwords) {
            Device device;
            const std::string text = std::string(address.prefix) + "_load_" + width_name(dwords) + " " +
                                     registers(8, dwords) + ", " + address.text;
            CAPTURE(text);
            const WaveState after = device.go(text);
            for (unsigned lane = 0; lane < 64; ++lane) {
                for (unsigned i = 0; i < dwords; ++i)
                    CHECK(after.v(8 + i)[lane] == bytes(64 * lane + 16 + 4 * i, 4));
            }
        }
    }
}

TEST_CASE("isa: stores of every width write their bytes and no others") {
    const struct {
        const char* width;
        unsigned count, shift;  // bytes, and where in the register they start
    } cases[] = {{"byte", 1, 0},  {"byte_d16_hi", 1, 16}, {"short", 2, 0},    {"short_d16_hi", 2, 16},
                 {"dword", 4, 0}, {"dwordx2", 8, 0},      {"dwordx3", 12, 0}, {"dwordx4", 16, 0}};
    for (const Address& address : kAddresses) {
        for (const auto& c : cases) {
            Device device;
            device.state.exec = 0x5555555555555555;
            const std::string text = store_text(address, c.width, registers(8, (c.count + 3) / 4));
            CAPTURE(text);
            device.go(text);
            for (unsigned i = 0; i < 64 * 64; ++i) {
                const unsigned lane = i / 64;
                const unsigned at = i % 64;
                u8 expected = Device::pattern(i);
                if (lane % 2 == 0 && at >= 16 && at < 16 + c.count) {
                    const unsigned byte = at - 16;
                    expected = static_cast<u8>((0xa0b0c0d0 + byte / 4) >> (c.shift + 8 * (byte % 4)));
                }
                REQUIRE(device.data[i] == expected);
            }
        }
    }
}

TEST_CASE("isa: a buffer checks its range dword by dword; loads give zero, stores do nothing") {
    Device device;
    device.state.set_s(10, 64 * 32 + 24);  // lane 32's first two dwords at +16, no more
    const WaveState after = device.go("buffer_load_dwordx4 v[8:11], v4, s[8:11], 0 offen offset:16");
    for (unsigned lane = 0; lane < 64; ++lane) {
        for (unsigned i = 0; i < 4; ++i) {
            const unsigned at = 64 * lane + 16 + 4 * i;
            CHECK(after.v(8 + i)[lane] == (at < 64 * 32 + 24 ? bytes(at, 4) : 0));
        }
    }
    device.go("buffer_store_dwordx4 v[12:15], v4, s[8:11], 0 offen offset:16");
    for (unsigned lane = 0; lane < 64; ++lane) {
        for (unsigned i = 0; i < 4; ++i) {
            const unsigned at = 64 * lane + 16 + 4 * i;
            CHECK(device.word(at) == (at < 64 * 32 + 24 ? 0x11111111 * (i + 1) : bytes(at, 4)));
        }
    }
}

TEST_CASE("isa: scalar loads") {
    Device device;
    const WaveState after = device.go(
        "s_load_dword s20, s[4:5], 0x4\n"
        "s_load_dwordx2 s[22:23], s[4:5], 0x8\n"
        "s_load_dwordx4 s[24:27], s[4:5], s12\n"
        "s_load_dwordx8 s[28:35], s[4:5], 0x40\n"
        "s_load_dwordx16 s[36:51], s[4:5], 0x80\n"
        "s_buffer_load_dword s52, s[8:11], 0xc\n"
        "s_buffer_load_dwordx2 s[54:55], s[8:11], s12");
    CHECK(after.s(20) == bytes(4, 4));
    CHECK(after.s(23) == bytes(12, 4));
    for (unsigned i = 0; i < 4; ++i)
        CHECK(after.s(24 + i) == bytes(16 + 4 * i, 4));
    for (unsigned i = 0; i < 8; ++i)
        CHECK(after.s(28 + i) == bytes(0x40 + 4 * i, 4));
    for (unsigned i = 0; i < 16; ++i)
        CHECK(after.s(36 + i) == bytes(0x80 + 4 * i, 4));
    CHECK(after.s(52) == bytes(12, 4));
    CHECK(after.s(55) == bytes(20, 4));
}

TEST_CASE("isa: accesses outside every allocation are errors") {
    Device device;
    device.state.set_v(3, 0);
    CHECK(fails("global_load_dword v8, v[2:3], off", device.state, &device.memory));
    CHECK(fails("global_store_dword v[2:3], v8, off", device.state, &device.memory));
    device.state.set_s64(4, 16);
    CHECK(fails("s_load_dword s20, s[4:5], 0x0", device.state, &device.memory));
}

namespace {

struct Atomic {
    const char* global;  // global_atomic_...
    const char* lds;     // ds_...
    u64 (*result)(u64 old, u64 data, unsigned bits);
};
std::int64_t signed_of(u64 x, unsigned bits) {
    return static_cast<std::int64_t>(x << (64 - bits)) >> (64 - bits);
}
const Atomic kAtomics[] = {
    {"add", "add_#u", [](u64 m, u64 d, unsigned) { return m + d; }},
    {"sub", "sub_#u", [](u64 m, u64 d, unsigned) { return m - d; }},
    {nullptr, "rsub_#u", [](u64 m, u64 d, unsigned) { return d - m; }},
    {"smin", "min_#i", [](u64 m, u64 d, unsigned b) { return signed_of(m, b) < signed_of(d, b) ? m : d; }},
    {"umin", "min_#u", [](u64 m, u64 d, unsigned) { return m < d ? m : d; }},
    {"smax", "max_#i", [](u64 m, u64 d, unsigned b) { return signed_of(m, b) > signed_of(d, b) ? m : d; }},
    {"umax", "max_#u", [](u64 m, u64 d, unsigned) { return m > d ? m : d; }},
    {"and", "and_#b", [](u64 m, u64 d, unsigned) { return m & d; }},
    {"or", "or_#b", [](u64 m, u64 d, unsigned) { return m | d; }},
    {"xor", "xor_#b", [](u64 m, u64 d, unsigned) { return m ^ d; }},
    // Counts up to the operand and starts over; counts down from it.
    {"inc", "inc_#u", [](u64 m, u64 d, unsigned) { return m >= d ? 0 : m + 1; }},
    {"dec", "dec_#u", [](u64 m, u64 d, unsigned) { return m == 0 || m > d ? d : m - 1; }},
    {"swap", "wrxchg_#b", [](u64, u64 d, unsigned) { return d; }},
};

u64 edge(Random& random) {
    static const u64 kEdges[] = {0,      1, 2, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, u64{1} << 63,
                                 ~u64{0}};
    return random.below(3) == 0 ? kEdges[random.below(9)] : random.bits() | u64{random.bits()} << 32;
}

}  // namespace

TEST_CASE("isa: integer atomics in memory, with and without the old value, in both widths") {
    Random random;
    CAPTURE(random.seed());
    for (const Atomic& atomic : kAtomics) {
        if (atomic.global == nullptr)
            continue;
        for (const unsigned bits : {32u, 64u}) {
            for (const char* family : {"global", "flat"}) {
                Device device;
                u64 memory[64], data[64];
                Lanes low{}, high{};
                for (unsigned lane = 0; lane < 64; ++lane) {
                    memory[lane] = edge(random);
                    data[lane] = random.below(4) == 0 ? memory[lane] : edge(random);
                    if (bits == 32) {
                        memory[lane] &= 0xffffffff;
                        data[lane] &= 0xffffffff;
                    }
                    std::memcpy(device.data + 64 * lane + 8, &memory[lane], bits / 8);
                    low[lane] = static_cast<u32>(data[lane]);
                    high[lane] = static_cast<u32>(data[lane] >> 32);
                }
                device.state.set_v(12, low);
                device.state.set_v(13, high);
                const std::string name =
                    std::string(family) + "_atomic_" + atomic.global + (bits == 64 ? "_x2 " : " ");
                const std::string result = bits == 64 ? "v[8:9], " : "v8, ";
                const std::string source = bits == 64 ? "v[12:13]" : "v12";
                const std::string place = std::string(family) == "flat" ? " offset:8" : ", off offset:8";
                const std::string text = name + result + "v[2:3], " + source + place + " sc0\n" + name +
                                         "v[2:3], " + source + place;
                CAPTURE(text);
                const WaveState after = device.go(text);
                for (unsigned lane = 0; lane < 64; ++lane) {
                    const u64 mask = bits == 64 ? ~u64{0} : 0xffffffff;
                    const u64 once = atomic.result(memory[lane], data[lane], bits) & mask;
                    const u64 twice = atomic.result(once, data[lane], bits) & mask;
                    u64 found = 0;
                    std::memcpy(&found, device.data + 64 * lane + 8, bits / 8);
                    CAPTURE(memory[lane]);
                    CAPTURE(data[lane]);
                    CHECK(found == twice);
                    CHECK(after.v(8)[lane] == static_cast<u32>(memory[lane]));
                    if (bits == 64)
                        CHECK(after.v(9)[lane] == static_cast<u32>(memory[lane] >> 32));
                }
            }
        }
    }
}

TEST_CASE("isa: compare and swap takes the new value first in memory, the expected one first in LDS") {
    Device device;
    Lanes expected{};
    for (unsigned lane = 0; lane < 64; ++lane)
        expected[lane] = lane % 2 == 0 ? bytes(64 * lane, 4) : 0;
    device.state.set_v(12, 0xabcd);
    device.state.set_v(13, expected);
    const WaveState after = device.go("global_atomic_cmpswap v8, v[2:3], v[12:13], off sc0");
    for (unsigned lane = 0; lane < 64; ++lane) {
        CHECK(after.v(8)[lane] == bytes(64 * lane, 4));
        CHECK(device.word(64 * lane) == (lane % 2 == 0 ? 0xabcd : bytes(64 * lane, 4)));
    }
    WaveState state;
    state.lds.resize(256);
    Lanes address{}, guess{};
    for (unsigned lane = 0; lane < 64; ++lane) {
        address[lane] = 4 * lane;
        guess[lane] = lane % 2 == 0 ? 0 : 7;
    }
    state.set_v(1, address);
    state.set_v(2, guess);
    state.set_v(3, 0xabcd);
    const WaveState shared =
        run("ds_cmpst_rtn_b32 v0, v1, v2, v3\nds_read_b32 v4, v1\ns_waitcnt lgkmcnt(0)", state);
    for (unsigned lane = 0; lane < 64; ++lane) {
        CHECK(shared.v(0)[lane] == 0);
        CHECK(shared.v(4)[lane] == (lane % 2 == 0 ? 0xabcd : 0));
    }
}

TEST_CASE("isa: all lanes on one address add up") {
    Device device;
    std::memset(device.data, 0, 64);
    device.state.set_v(2, static_cast<u32>(reinterpret_cast<std::uintptr_t>(device.data)));
    device.state.set_v(3, static_cast<u32>(reinterpret_cast<std::uintptr_t>(device.data) >> 32));
    device.state.set_v(12, lane_numbers());
    device.state.set_v(13, as_bits(0.5f));
    device.state.set_v(14, 0x40003f80);  // bf16 2 and 1
    device.state.set_v(15, 0x40003c00);  // f16 2 and 1
    device.state.set_v(4, 16);           // every lane at the buffer's byte 16
    device.go(
        "global_atomic_add v[2:3], v12, off\n"
        "global_atomic_add_f32 v[2:3], v13, off offset:4\n"
        "global_atomic_pk_add_bf16 v[2:3], v14, off offset:8\n"
        "flat_atomic_pk_add_f16 v[2:3], v15 offset:12\n"
        "buffer_atomic_add v12, v4, s[8:11], 0 offen\n"
        "buffer_atomic_add_f32 v13, v4, s[8:11], 0 offen offset:4\n"
        "buffer_atomic_pk_add_bf16 v14, v4, s[8:11], 0 offen offset:8\n"
        "buffer_atomic_pk_add_f16 v15, v4, s[8:11], 0 offen offset:12");
    for (const unsigned at : {0u, 16u}) {
        CHECK(device.word(at) == 64 * 63 / 2);
        CHECK(device.word(at + 4) == as_bits(32.0f));
        CHECK(device.word(at + 8) == 0x43004280);   // 128 and 64
        CHECK(device.word(at + 12) == 0x58005400);  // 128 and 64
    }
}

TEST_CASE("isa: f64 atomics in memory") {
    Device device;
    const auto check = [&](const char* name, double memory, double data, double expected) {
        CAPTURE(name);
        std::memcpy(device.data, &memory, 8);
        const auto bits = std::bit_cast<u64>(data);
        device.state.set_v(12, static_cast<u32>(bits));
        device.state.set_v(13, static_cast<u32>(bits >> 32));
        device.state.exec = 1;
        device.go(std::string("global_atomic_") + name + "_f64 v[2:3], v[12:13], off");
        double found;
        std::memcpy(&found, device.data, 8);
        CHECK(found == expected);
    };
    check("add", 1.5, 0.25, 1.75);
    check("min", 1.5, -2, -2);
    check("max", 1.5, -2, 1.5);
}

TEST_CASE("isa: loads from memory straight to LDS go to M0's base, lane after lane") {
    for (const unsigned dwords : {1u, 3u, 4u}) {
        Device device;
        device.state.lds.resize(4096);
        device.state.m0 = 256;
        const WaveState after =
            device.go(std::string("global_load_lds_") + width_name(dwords) + " v[2:3], off offset:16");
        for (unsigned lane = 0; lane < 64; ++lane) {
            for (unsigned i = 0; i < 4 * dwords; ++i)
                CHECK(static_cast<u8>(after.lds[256 + 16 + lane * 4 * dwords + i]) ==
                      Device::pattern(64 * lane + 16 + i));
        }
    }
}

TEST_CASE("isa: LDS reads and writes of every width") {
    WaveState state;
    state.lds.resize(8192);
    for (unsigned i = 0; i < 8192; ++i)
        state.lds[i] = static_cast<std::byte>(Device::pattern(i));
    Lanes address{};
    for (unsigned lane = 0; lane < 64; ++lane)
        address[lane] = 64 * lane;
    state.set_v(1, address);
    for (unsigned i = 0; i < 4; ++i)
        state.set_v(8 + i, 0xa0b0c0d0 + i);
    const struct {
        const char* name;
        u32 (*value)(unsigned at, u32 old);
    } narrow[] = {{"u8", kNarrowLoads[0].value},      {"i8", kNarrowLoads[1].value},
                  {"u16", kNarrowLoads[2].value},     {"i16", kNarrowLoads[3].value},
                  {"u8_d16", kNarrowLoads[4].value},  {"u8_d16_hi", kNarrowLoads[5].value},
                  {"i8_d16", kNarrowLoads[6].value},  {"i8_d16_hi", kNarrowLoads[7].value},
                  {"u16_d16", kNarrowLoads[8].value}, {"u16_d16_hi", kNarrowLoads[9].value},
                  {"b32", kNarrowLoads[10].value}};
    for (const auto& c : narrow) {
        CAPTURE(c.name);
        const WaveState after =
            run(std::string("ds_read_") + c.name + " v8, v1 offset:16\ns_waitcnt lgkmcnt(0)", state);
        for (unsigned lane = 0; lane < 64; ++lane)
            CHECK(after.v(8)[lane] == c.value(64 * lane + 16, 0xa0b0c0d0));
    }
    const auto wide = [&](const std::string& text, std::initializer_list<unsigned> dwords) {
        CAPTURE(text);
        const WaveState after = run(text + "\ns_waitcnt lgkmcnt(0)", state);
        for (unsigned lane = 0; lane < 64; ++lane) {
            unsigned reg = 8;
            for (const unsigned at : dwords)
                CHECK(after.v(reg++)[lane] == bytes(64 * lane + at, 4));
        }
    };
    wide("ds_read_b64 v[8:9], v1 offset:8", {8, 12});
    wide("ds_read_b96 v[8:10], v1 offset:16", {16, 20, 24});
    wide("ds_read_b128 v[8:11], v1 offset:16", {16, 20, 24, 28});
    wide("ds_read2_b32 v[8:9], v1 offset0:3 offset1:7", {12, 28});
    wide("ds_read2_b64 v[8:11], v1 offset0:1 offset1:5", {8, 12, 40, 44});
    wide("ds_read2st64_b32 v[8:9], v1 offset0:1 offset1:4", {256, 1024});
    wide("ds_read2st64_b64 v[8:11], v1 offset0:1 offset1:2", {512, 516, 1024, 1028});

    const auto written = [&](const std::string& text, std::initializer_list<std::pair<unsigned, u32>> dwords,
                             unsigned size = 4) {
        CAPTURE(text);
        WaveState before = state;
        before.exec = 1;
        const WaveState after = run(text + "\ns_waitcnt lgkmcnt(0)", before);
        Bytes expected = state.lds;
        for (const auto& [at, value] : dwords) {
            for (unsigned i = 0; i < size; ++i)
                expected[at + i] = static_cast<std::byte>(value >> (8 * i));
        }
        CHECK(after.lds == expected);
    };
    written("ds_write_b8 v1, v8 offset:5", {{5, 0xd0}}, 1);
    written("ds_write_b8_d16_hi v1, v8 offset:5", {{5, 0xb0}}, 1);
    written("ds_write_b16 v1, v8 offset:6", {{6, 0xc0d0}}, 2);
    written("ds_write_b16_d16_hi v1, v8 offset:6", {{6, 0xa0b0}}, 2);
    written("ds_write_b32 v1, v8 offset:8", {{8, 0xa0b0c0d0}});
    written("ds_write_b64 v1, v[8:9] offset:8", {{8, 0xa0b0c0d0}, {12, 0xa0b0c0d1}});
    written("ds_write_b96 v1, v[8:10] offset:16", {{16, 0xa0b0c0d0}, {20, 0xa0b0c0d1}, {24, 0xa0b0c0d2}});
    written("ds_write_b128 v1, v[8:11] offset:16",
            {{16, 0xa0b0c0d0}, {20, 0xa0b0c0d1}, {24, 0xa0b0c0d2}, {28, 0xa0b0c0d3}});
    written("ds_write2_b32 v1, v8, v9 offset0:3 offset1:7", {{12, 0xa0b0c0d0}, {28, 0xa0b0c0d1}});
    written("ds_write2_b64 v1, v[8:9], v[10:11] offset0:1 offset1:5",
            {{8, 0xa0b0c0d0}, {12, 0xa0b0c0d1}, {40, 0xa0b0c0d2}, {44, 0xa0b0c0d3}});
    written("ds_write2st64_b32 v1, v8, v9 offset0:1 offset1:4", {{256, 0xa0b0c0d0}, {1024, 0xa0b0c0d1}});
    written("ds_write2st64_b64 v1, v[8:9], v[10:11] offset0:1 offset1:2",
            {{512, 0xa0b0c0d0}, {516, 0xa0b0c0d1}, {1024, 0xa0b0c0d2}, {1028, 0xa0b0c0d3}});
}

TEST_CASE("isa: LDS atomics, with and without the old value, in both widths") {
    Random random;
    CAPTURE(random.seed());
    for (const Atomic& atomic : kAtomics) {
        for (const unsigned bits : {32u, 64u}) {
            WaveState state;
            state.lds.resize(64 * 8);
            u64 memory[64], data[64];
            Lanes address{}, low{}, high{};
            for (unsigned lane = 0; lane < 64; ++lane) {
                const u64 mask = bits == 64 ? ~u64{0} : 0xffffffff;
                memory[lane] = edge(random) & mask;
                data[lane] = edge(random) & mask;
                address[lane] = 8 * lane;
                std::memcpy(&state.lds[8 * lane], &memory[lane], bits / 8);
                low[lane] = static_cast<u32>(data[lane]);
                high[lane] = static_cast<u32>(data[lane] >> 32);
            }
            state.set_v(1, address);
            state.set_v(2, low);
            state.set_v(3, high);
            // "add_#u": the name, then where "rtn" goes, then the type's letter.
            std::string plain = std::string("ds_") + atomic.lds, returning = plain;
            const std::string type = plain.substr(plain.find('#') + 1) + std::to_string(bits);
            plain.replace(plain.find('#'), std::string::npos, type);
            returning.replace(returning.find('#'), std::string::npos, "rtn_" + type);
            const std::string source = bits == 64 ? "v[2:3]" : "v2";
            std::string text = returning + (bits == 64 ? " v[8:9], v1, " : " v8, v1, ") + source;
            const bool exchange =
                std::string(atomic.lds).starts_with("wrxchg");  // exists with the old value only
            if (!exchange)
                text += "\n" + plain + " v1, " + source;
            CAPTURE(text);
            const WaveState after = run(text + "\ns_waitcnt lgkmcnt(0)", state);
            for (unsigned lane = 0; lane < 64; ++lane) {
                const u64 mask = bits == 64 ? ~u64{0} : 0xffffffff;
                const u64 once = atomic.result(memory[lane], data[lane], bits) & mask;
                const u64 twice = exchange ? once : atomic.result(once, data[lane], bits) & mask;
                u64 found = 0;
                std::memcpy(&found, &after.lds[8 * lane], bits / 8);
                CHECK(found == twice);
                CHECK(after.v(8)[lane] == static_cast<u32>(memory[lane]));
            }
        }
    }
}

TEST_CASE("isa: float atomics in LDS") {
    WaveState state;
    state.lds.resize(256);
    const auto put = [&](unsigned at, u32 value) { std::memcpy(&state.lds[at], &value, 4); };
    put(0, as_bits(1.5f));
    put(4, as_bits(1.5f));
    put(8, as_bits(1.5f));
    put(12, 0x40003f80);
    put(16, 0x40003c00);
    state.exec = 1;
    state.set_v(1, 0);
    state.set_v(2, as_bits(-0.25f));
    state.set_v(3, 0x3f803f80);
    state.set_v(4, 0x3c003c00);
    const WaveState after =
        run("ds_add_rtn_f32 v5, v1, v2\n"
            "ds_min_rtn_f32 v6, v1, v2 offset:4\n"
            "ds_max_f32 v1, v2 offset:8\n"
            "ds_pk_add_bf16 v1, v3 offset:12\n"
            "ds_pk_add_rtn_f16 v7, v1, v4 offset:16\n"
            "s_waitcnt lgkmcnt(0)",
            state);
    const auto word = [&](unsigned at) {
        u32 value;
        std::memcpy(&value, &after.lds[at], 4);
        return value;
    };
    CHECK(word(0) == as_bits(1.25f));
    CHECK(word(4) == as_bits(-0.25f));
    CHECK(word(8) == as_bits(1.5f));
    CHECK(word(12) == 0x40404000);  // 3 and 2
    CHECK(word(16) == 0x42004000);  // 3 and 2
    CHECK(after.v(5)[0] == as_bits(1.5f));
    CHECK(after.v(7)[0] == 0x40003c00);
}

TEST_CASE("isa: LDS accesses out of bounds, or of bytes that nothing wrote, are errors") {
    WaveState state;
    state.lds.resize(64);
    state.lds_unwritten = 64;
    state.set_v(1, 60);
    state.set_v(2, 0);
    CHECK_FALSE(fails("ds_read_b32 v0, v1\ns_waitcnt lgkmcnt(0)", state));
    CHECK(fails("ds_write_b32 v1, v2 offset:68", state));
    CHECK(fails("ds_read_b32 v0, v1 offset:68", state));
    // Not written: an error where it comes to matter.
    CHECK(fails("ds_read_b32 v0, v1 offset:4\ns_waitcnt lgkmcnt(0)\nds_read_b32 v3, v0", state));
}
