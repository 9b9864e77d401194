// One wave, a few lines of assembly and given registers: how instructions are tested, one at a time.
//
//   WaveState state;
//   state.set_v(1, values);            // 64 lanes
//   state.set_s(4, 0x3f800000);
//   auto after = run_wave("v_add_f32_e32 v0, s4, v1", state);
//   REQUIRE(after); CHECK(after->v(0)[17] == ...);
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "runtime/sim/machine.hpp"

namespace kiln::sim {

using Lanes = std::array<std::uint32_t, 64>;

// What the registers hold before or after a run. A register that is not in here was never written: reading it
// is an error (see undefined.hpp for what counts as reading).
struct WaveState {
    std::uint64_t exec = ~std::uint64_t{0};
    std::optional<std::uint64_t> vcc;
    std::optional<bool> scc;
    std::optional<std::uint32_t> m0;
    std::map<unsigned, Lanes> vgprs;
    std::map<unsigned, Lanes> agprs;
    std::map<unsigned, std::uint32_t> sgprs;
    // After a run: lanes whose value is not defined, where there are any.
    std::map<unsigned, std::uint64_t> vgpr_undefined;
    Bytes lds;                       // before a run: the contents, all of it written; after: the contents
    std::size_t lds_unwritten = 0;   // bytes allocated behind `lds` that nothing wrote
    device::ExecutionCounts counts;  // after a run: what it executed, the s_endpgm that ends it included

    void set_v(unsigned index, const Lanes& lanes) { vgprs[index] = lanes; }
    void set_v(unsigned index, std::uint32_t in_every_lane) { vgprs[index].fill(in_every_lane); }
    void set_a(unsigned index, const Lanes& lanes) { agprs[index] = lanes; }
    void set_s(unsigned index, std::uint32_t value) { sgprs[index] = value; }
    void set_s64(unsigned index, std::uint64_t value) {
        sgprs[index] = static_cast<std::uint32_t>(value);
        sgprs[index + 1] = static_cast<std::uint32_t>(value >> 32);
    }
    // Of a register that is there; after a run, those that no lane wrote are absent.
    [[nodiscard]] const Lanes& v(unsigned index) const { return vgprs.at(index); }
    [[nodiscard]] const Lanes& a(unsigned index) const { return agprs.at(index); }
    [[nodiscard]] std::uint32_t s(unsigned index) const { return sgprs.at(index); }
    [[nodiscard]] std::uint64_t s64(unsigned index) const {
        return s(index) | std::uint64_t{s(index + 1)} << 32;
    }
};

// Runs `instructions` (one a line, as a listing writes them but without offset and encoding; empty lines are
// skipped; a branch operand counts lines) from the first line past the last one or to s_endpgm, with 256
// VGPRs, 256 AGPRs and 102 SGPRs. Rules are checked as in a real launch, and errors are device_failed with
// the same messages. `memory` is what the wave may touch; null means nothing.
[[nodiscard]] Result<WaveState> run_wave(std::string_view instructions, const WaveState& before,
                                         const Memory* memory = nullptr);

}  // namespace kiln::sim
