// The text of one instruction, taken apart: mnemonic, operands, modifiers.
//
//   v_mov_b32_dpp v79, v78 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf bound_ctrl:1
//     mnemonic "v_mov_b32", suffix dpp, operands {"v79", "v78"}, modifiers {{"quad_perm", "[1,0,3,2]"}, ...}
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/sim/instruction.hpp"

namespace kiln::sim {

struct Modifier {
    std::string_view name, value;  // the value may be empty
    bool used = false;
};

struct InstructionText {
    std::string_view mnemonic;  // without _e32, _e64, _dpp, _sdwa
    bool dpp = false, sdwa = false;
    std::vector<std::string_view> operands;
    std::vector<Modifier> modifiers;

    // Marks it as used. Null when absent.
    [[nodiscard]] Modifier* take(std::string_view name);
    // The first that nobody took.
    [[nodiscard]] const Modifier* untaken() const;
};

[[nodiscard]] InstructionText split_instruction(std::string_view text);

// A decimal, negative or 0x number, all of the text.
[[nodiscard]] std::optional<std::int64_t> parse_number(std::string_view text);
// "[0,1,1]": a bit each; nothing when it is anything else.
struct BitList {
    unsigned bits = 0, count = 0;
};
[[nodiscard]] std::optional<BitList> parse_bits(std::string_view text);

// How an inline float constant becomes bits, and how wide a source is.
enum class Type : std::uint8_t { b32, f32, b16, f16, bf16, b64, i64, f64 };
[[nodiscard]] unsigned type_bits(Type type);

// A register, a special source, or a constant (into Operand::value). `dwords` is set from the text for
// registers and from the type for constants. Nothing when the text is no operand.
[[nodiscard]] std::optional<Operand> parse_operand(std::string_view text, Type type);

}  // namespace kiln::sim
