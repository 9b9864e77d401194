// From the text of a listing to instructions that can be executed.
//
// A form (Opcode::form) states the operands in the order of the text: destinations, a colon, sources, a
// letter each.
// clang-format off
//   destinations  v w    vector register, pair      s d  scalar register, pair       c  lane mask (scalar pair)
//   sources       u U I  32 and 64 bits, signed 64  f F  float32, float64            m  lane mask
//                 i h b  16-bit integer, f16, bf16  P Q  pair of float32, of dwords  p  pair of 16-bit numbers
//                 k      16-bit immediate           +    the destination again
// clang-format on
// A form that starts with '!' names a family with a syntax of its own (decode_memory.cpp).
#pragma once

#include <string>
#include <string_view>

#include "runtime/compile/listing.hpp"
#include "runtime/sim/code.hpp"
#include "runtime/sim/parse.hpp"

namespace kiln::sim {

// Decodes every line. What the simulator does not know becomes an instruction that fails when it is executed.
// The code's `listing` must already hold the text that the lines point into.
void decode_listing(Code& code, const std::vector<compile::ListingLine>& lines, std::uint32_t text_bytes);

// The parts of the decoder. Each returns why the text can not be decoded; empty when it could.
std::string decode_operands(Code& code, Instruction& instruction, InstructionText& text);
std::string decode_family(Code& code, Instruction& instruction, InstructionText& text);
std::string decode_lane_control(Code& code, Instruction& instruction, InstructionText& text);

// For `needs_*`: notes that the operand is used.
void note_registers(Instruction& instruction, const Operand& operand);

// Executes any instruction that could not be decoded: fails with Instruction::reason.
void run_unknown(Wave& wave, const Instruction& instruction);

}  // namespace kiln::sim
