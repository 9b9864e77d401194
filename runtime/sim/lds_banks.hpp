// What an access costs the LDS of a compute unit: in how many phases its lanes take turns, and how many
// cycles a phase takes because lanes of it want different words of one bank.
//
// Measured by others on gfx950: 64 banks for reads of 64 bits (two phases of 32 lanes) and of 128 bits (four
// phases: lanes 0-3, 12-15 and 20-27; the others of 0-31; the same of the upper half); 32 banks for reads of
// 96 bits (eight phases) and for writes of 64 bits (four phases of 16).
//
// Nobody published a measurement of the others (?), so they are taken as the dearest that fits those: 32
// banks for all of them; reads and writes of up to 32 bits in two phases of 32 lanes; writes of 96 and of 128
// bits in eight phases of 8; lanes of a phase that are neighbours where nothing else is known, reads of 96
// bits too; lanes that write, or update, the same word one after the other; a phase of which no lane takes
// part as long as any other. Lanes that read the same word share it.
#pragma once

#include <cstdint>

#include "runtime/sim/access.hpp"

namespace kiln::sim {

struct LdsCost {
    unsigned cycles = 0;     // all
    unsigned conflicts = 0;  // of those, the ones that accesses to other banks would not have taken
};

// Addresses of the 64 lanes, of which `lanes` take part; each accesses `bytes` bytes, at an address that is
// aligned to as many, or to a dword where they are 12. One access of an instruction that makes two.
[[nodiscard]] LdsCost lds_cost(std::uint64_t lanes, const std::uint32_t* address, unsigned bytes,
                               AccessKind kind);

// Adds it to what the wave has cost.
inline void count_lds(Wave& wave, std::uint64_t lanes, const std::uint32_t* address, unsigned bytes,
                      AccessKind kind) {
    const LdsCost cost = lds_cost(lanes, address, bytes, kind);
    ++wave.lds_accesses;
    wave.lds_cycles += cost.cycles;
    wave.lds_conflict_cycles += cost.conflicts;
}

}  // namespace kiln::sim
