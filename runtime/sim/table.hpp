// Every mnemonic that the simulator knows.
#pragma once

#include <span>
#include <string_view>

#include "runtime/sim/instruction.hpp"

namespace kiln::sim {

// Null when the mnemonic (without _e32, _e64, _sdwa, _dpp) is unknown. Of the vector handlers, those for the
// best instruction set that this processor has.
const Opcode* find_opcode(std::string_view mnemonic);

// One table a source file. The first group exists once for each instruction set.
#define KILN_SIM_LANE_TABLES                   \
    std::span<const Opcode> integer_opcodes(); \
    std::span<const Opcode> float_opcodes();   \
    std::span<const Opcode> wide_opcodes();    \
    std::span<const Opcode> packed_opcodes();  \
    std::span<const Opcode> compare_opcodes();

namespace baseline {
KILN_SIM_LANE_TABLES
}
namespace v3 {
KILN_SIM_LANE_TABLES
}
namespace portable {
std::span<const Opcode> convert_opcodes();
std::span<const Opcode> half_opcodes();
}  // namespace portable
#undef KILN_SIM_LANE_TABLES

std::span<const Opcode> scalar_opcodes();
std::span<const Opcode> branch_opcodes();
std::span<const Opcode> cross_lane_opcodes();
std::span<const Opcode> scalar_memory_opcodes();
std::span<const Opcode> global_opcodes();
std::span<const Opcode> buffer_opcodes();
std::span<const Opcode> lds_opcodes();

}  // namespace kiln::sim
