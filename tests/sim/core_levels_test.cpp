// The vector instructions are compiled for two instruction sets; both must give the same bits.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>

#include "core_support.hpp"
#include "runtime/sim/numeric/convert.hpp"
#include "runtime/sim/table.hpp"
#include "runtime/sim/wave.hpp"
#include "runtime/sim/wave_run.hpp"

namespace kiln::sim_test {
namespace {

using sim::Instruction;
using sim::Opcode;
using sim::Operand;
using sim::Wave;

// Numbers at which floats change their behaviour, among random ones.
std::uint32_t interesting() {
    static constexpr std::uint32_t kEdges[] = {0,          0x80000000, 0x7f800000, 0xff800000,
                                               0x7fc00000, 0x7f800001, 0x00000001, 0x807fffff,
                                               0x7f7fffff, 0x4f000000, 0xcf000000, 0x3f800000};
    const auto bits = static_cast<std::uint32_t>(random()());
    return bits % 4 == 0 ? kEdges[bits / 4 % std::size(kEdges)] : static_cast<std::uint32_t>(random()());
}

unsigned dwords_of(char letter) {
    return std::string_view("wdcUIFPQm").find(letter) != std::string_view::npos ? 2 : 1;
}

// All operands in vector registers, lane masks in scalars.
Instruction instruction_for(const Opcode& opcode) {
    Instruction i;
    i.opcode = &opcode;
    i.run = opcode.handler;
    i.op_sel_hi = 7;
    i.op_sel = static_cast<std::uint8_t>(random()() & 3);
    i.offset = static_cast<std::int32_t>(random()() & 0xff);
    const std::size_t colon = opcode.form.find(':');
    unsigned next_row = 0, next_scalar = 0, source = 0;
    for (std::size_t n = 0; n < opcode.form.size(); ++n) {
        const char letter = opcode.form[n];
        if (n == colon) {
            continue;
        }
        Operand& o = n < colon ? (n == 0 ? i.dst : i.dst2) : i.src[source++];
        if (letter == '+') {
            o = i.dst;
            continue;
        }
        o.dwords = static_cast<std::uint8_t>(dwords_of(letter));
        const bool scalar = letter == 'c' || letter == 'm';
        o.kind = scalar ? Operand::sgpr : Operand::vgpr;
        o.index = static_cast<std::uint16_t>(scalar ? next_scalar : next_row);
        (scalar ? next_scalar : next_row) += 2;
    }
    return i;
}

void check_tables(std::span<const Opcode> baseline, std::span<const Opcode> v3) {
    REQUIRE(baseline.size() == v3.size());
    const std::unique_ptr<Wave[]> waves(new Wave[2]);
    for (std::size_t n = 0; n < baseline.size(); ++n) {
        REQUIRE(baseline[n].name == v3[n].name);
        INFO(std::string(baseline[n].name));
        CHECK((baseline[n].handler != v3[n].handler));
        for (int round = 0; round < 8; ++round) {
            Instruction i = instruction_for(baseline[n]);
            std::memset(static_cast<void*>(waves.get()), 0, 2 * sizeof(Wave));
            for (unsigned row = 0; row < 12; ++row) {
                for (auto& lane : waves[0].rows[row]) {
                    lane = interesting();
                }
                waves[0].defined[row] = ~std::uint64_t{0};
            }
            for (unsigned s = 0; s < 16; ++s) {
                waves[0].sgprs[s] = static_cast<std::uint32_t>(random()());
                waves[0].sgprs_defined[s] = ~0u;
            }
            const std::uint64_t mask = random()() | std::uint64_t{random()()} << 32;
            waves[0].set_exec(round % 2 == 0 ? ~std::uint64_t{0} : mask);
            std::memcpy(static_cast<void*>(&waves[1]), &waves[0], sizeof(Wave));
            i.run(waves[0], i);
            i.opcode = &v3[n];
            i.run = v3[n].handler;
            i.run(waves[1], i);
            REQUIRE(std::memcmp(waves[0].rows, waves[1].rows, 12 * sizeof waves[0].rows[0]) == 0);
            REQUIRE(std::memcmp(waves[0].sgprs, waves[1].sgprs, sizeof waves[0].sgprs) == 0);
            REQUIRE(std::memcmp(waves[0].defined, waves[1].defined, sizeof waves[0].defined) == 0);
        }
    }
}

TEST_CASE("levels: baseline and AVX2 agree, instruction by instruction") {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
        MESSAGE("no AVX2 here");
        return;
    }
    check_tables(sim::baseline::integer_opcodes(), sim::v3::integer_opcodes());
    check_tables(sim::baseline::float_opcodes(), sim::v3::float_opcodes());
    check_tables(sim::baseline::wide_opcodes(), sim::v3::wide_opcodes());
    check_tables(sim::baseline::packed_opcodes(), sim::v3::packed_opcodes());
    check_tables(sim::baseline::compare_opcodes(), sim::v3::compare_opcodes());
}

// The loop that converts to e4m3 is written for speed; numeric::encode is the definition.
TEST_CASE("levels: the fast conversion to e4m3 is the exact one") {
    std::uint32_t bits = 0;
    for (int round = 0; round < 4096; ++round) {
        sim::WaveState state;
        sim::Lanes low{}, high{};
        for (unsigned lane = 0; lane < 64; ++lane) {
            // Every upper half of a float32, with lower halves around ties.
            low[lane] = bits << 16 | (round % 3 == 0 ? 0 : static_cast<std::uint32_t>(random()()) & 0xffff);
            high[lane] = (static_cast<std::uint32_t>(random()()) % 0x0a000000) + 0x3b000000;
            bits = (bits + 1) & 0xffff;
        }
        state.set_v(1, low);
        state.set_v(2, high);
        state.set_v(0, 0x12345678);
        const auto after = sim::run_wave("v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[0,0,1]", state);
        REQUIRE(after.has_value());
        for (unsigned lane = 0; lane < 64; ++lane) {
            const auto code = [](std::uint32_t x) {
                return sim::numeric::encode(sim::numeric::Format::e4m3, x);
            };
            const std::uint32_t expected = 0x5678 | (code(low[lane]) | code(high[lane]) << 8) << 16;
            // The sign of NaN is what the definition says as well.
            REQUIRE(after->v(0)[lane] == expected);
        }
    }
}

}  // namespace
}  // namespace kiln::sim_test
