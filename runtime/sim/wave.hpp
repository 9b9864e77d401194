// The state of one wave and of the work-group it belongs to.
//
// Small members that the vector handlers use are always inlined: those handlers are compiled for several
// instruction sets, and no function compiled for a newer one may be shared with the rest of the program.
#pragma once

#include <cstdint>
#include <cstring>

#include "runtime/device/dim3.hpp"
#include "runtime/sim/instruction.hpp"
#include "runtime/sim/numeric/matrix.hpp"
#include "runtime/sim/range.hpp"

namespace kiln::sim {

struct Code;  // program.hpp
class Memory;
class LateMemory;
struct LineCounter;  // lines.hpp
struct WorkGroup;
struct GroupRaces;  // races.hpp

#define KILN_INLINE [[gnu::always_inline]] inline

// Where an undefined value came from: the instruction that first read a register, or a byte of LDS or of
// memory, that nothing wrote.
struct Origin {
    const Instruction* reader = nullptr;  // null: nothing read it yet, the register itself was never written
    std::uint16_t what = 0;               // row, or kOriginSgpr + number, or kOriginLds, or kOriginMemory
    std::uint64_t address : 48 = 0;       // of kOriginMemory
};
inline constexpr std::uint16_t kOriginSgpr = 0x1000;
inline constexpr std::uint16_t kOriginLds = 0x2000;
inline constexpr std::uint16_t kOriginMemory = 0x3000;

struct alignas(64) Wave {
    std::uint32_t rows[kRows][kLanes];
    // Lanes of which all four bytes are defined. See undefined.hpp.
    std::uint64_t defined[kRows];
    // Of the other lanes: lanes whose byte n is defined.
    std::uint64_t bytes_defined[kRows][4];
    Origin origins[kRows];

    alignas(8) std::uint32_t sgprs[kScalarRegisters];
    alignas(8) std::uint32_t sgprs_defined[kScalarRegisters];  // bit by bit
    Origin sgpr_origins[kScalarRegisters];
    Origin scc_origin;
    bool scc, scc_defined;

    alignas(64) std::uint32_t exec_lanes[kLanes];  // all ones where EXEC is set; see lanes_of_exec()
    std::uint64_t exec_lanes_of;

    std::uint32_t pc;  // index of the next instruction
    bool stopped;      // does not go on by itself: it ended or waits at a barrier
    bool ended, at_barrier;
    std::uint32_t mode;  // as s_getreg shows it
    unsigned limit_v, limit_a, limit_s;
    unsigned number;  // in the work-group
    const Code* code;
    WorkGroup* group;

    // Those that the launch itself gives, which stay, then the last ones in which an address was found.
    static constexpr int kFixedRanges = 2, kCachedRanges = 8;
    Range ranges[kCachedRanges];
    int next_range;
    std::uint64_t last_poll;  // the address at which the wave last looked at the device's memory

    std::uint64_t executed[kNumCategories];
    std::uint64_t global_read, global_written, scalar_read, lds_read, lds_written;
    std::uint64_t mfma_cycles, lds_accesses, lds_cycles, lds_conflict_cycles;
    std::uint64_t line_requests, lines_read, lines_written, die_lines_read;

    KILN_INLINE std::uint64_t exec() const { return sgpr64(kExec); }
    KILN_INLINE std::uint64_t sgpr64(unsigned n) const {
        return sgprs[n] | static_cast<std::uint64_t>(sgprs[n + 1]) << 32;
    }
    KILN_INLINE std::uint64_t sgpr64_defined(unsigned n) const {
        return sgprs_defined[n] | static_cast<std::uint64_t>(sgprs_defined[n + 1]) << 32;
    }
    KILN_INLINE void set_sgpr64(unsigned n, std::uint64_t value,
                                std::uint64_t bits_defined = ~std::uint64_t{0}) {
        sgprs[n] = static_cast<std::uint32_t>(value);
        sgprs[n + 1] = static_cast<std::uint32_t>(value >> 32);
        sgprs_defined[n] = static_cast<std::uint32_t>(bits_defined);
        sgprs_defined[n + 1] = static_cast<std::uint32_t>(bits_defined >> 32);
    }
    KILN_INLINE void set_exec(std::uint64_t mask) { set_sgpr64(kExec, mask); }
    KILN_INLINE const std::uint32_t* lanes_of_exec() {
        const std::uint64_t mask = exec();
        if (exec_lanes_of != mask) {
            for (unsigned lane = 0; lane < kLanes; ++lane) {
                exec_lanes[lane] = 0u - static_cast<std::uint32_t>(mask >> lane & 1);
            }
            exec_lanes_of = mask;
        }
        return exec_lanes;
    }
    // Lanes of which byte n of the row is defined.
    KILN_INLINE std::uint64_t byte_defined(unsigned row, unsigned n) const {
        return defined[row] | bytes_defined[row][n];
    }
};

struct WorkGroup {
    device::Dim3 id;
    std::uint8_t* lds = nullptr;
    std::uint8_t* lds_written = nullptr;  // 0xff for every byte that is defined, else 0
    std::uint32_t lds_bytes = 0;
    const Memory* memory = nullptr;
    LineCounter* lines = nullptr;  // null: lines are not counted
    GroupRaces* races = nullptr;   // null: races are not looked for
    unsigned xcc = 0;              // the die it runs on
    numeric::Order matrix_order = numeric::Order::ascending;
    // How often a wave looked at the same place of the device's memory again, as one does that waits for
    // another work-group; see schedule.hpp.
    std::uint64_t polls = 0;
    // Null: every store is visible at once. The rest is late_memory.cpp's.
    LateMemory* late = nullptr;
    std::uint64_t acquired = 0, scalar_acquired = 0;
};

}  // namespace kiln::sim
