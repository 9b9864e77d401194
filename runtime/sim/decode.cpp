#include "runtime/sim/decode.hpp"

#include <fmt/format.h>

#include "runtime/sim/fault.hpp"
#include "runtime/sim/table.hpp"

namespace kiln::sim {
namespace {

struct SourceForm {
    Type type;
    unsigned dwords;
};

bool source_form(char letter, SourceForm& form) {
    switch (letter) {
        case 'u':
            form = {Type::b32, 1};
            return true;
        case 'f':
            form = {Type::f32, 1};
            return true;
        case 'i':
            form = {Type::b16, 1};
            return true;
        case 'h':
            form = {Type::f16, 1};
            return true;
        case 'b':
            form = {Type::bf16, 1};
            return true;
        case 'p':
            form = {Type::b32, 1};
            return true;
        case 'U':
        case 'm':
            form = {Type::b64, 2};
            return true;
        case 'I':
            form = {Type::i64, 2};
            return true;
        case 'F':
            form = {Type::f64, 2};
            return true;
        case 'P':
            form = {Type::f32, 2};
            return true;
        case 'Q':
            form = {Type::b32, 2};
            return true;
        default:
            return false;
    }
}

std::string decode_destination(Instruction& i, char letter, std::string_view text, Operand& dst) {
    const auto operand = parse_operand(text, Type::b32);
    const bool vector = letter == 'v' || letter == 'w';
    const unsigned dwords = letter == 'v' || letter == 's' ? 1 : 2;
    if (!operand || operand->kind != (vector ? Operand::vgpr : Operand::sgpr) || operand->dwords != dwords ||
        operand->modifiers != 0) {
        return fmt::format("'{}' can not be a destination here", text);
    }
    dst = *operand;
    note_registers(i, dst);
    return {};
}

std::string decode_source(Code& code, Instruction& i, char letter, std::string_view text, Operand& src) {
    SourceForm form{};
    if (letter == 'k') {
        const auto number = parse_number(text);
        if (!number) {
            return fmt::format("'{}' is no number", text);
        }
        src.kind = Operand::constant;
        src.value = static_cast<std::uint32_t>(*number);
        return {};
    }
    if (!source_form(letter, form)) {
        return fmt::format("form '{}' has no letter '{}'", i.opcode->form, letter);
    }
    const auto operand = parse_operand(text, form.type);
    if (!operand || operand->kind == Operand::off) {
        return fmt::format("'{}' is no operand", text);
    }
    const bool vector = is_vector_alu(i.category);
    const bool is_register = operand->kind == Operand::vgpr || operand->kind == Operand::sgpr;
    if (is_register && operand->dwords != form.dwords) {
        return fmt::format("'{}' is not {} dwords wide", text, form.dwords);
    }
    if ((operand->kind == Operand::vgpr && (!vector || letter == 'm')) ||
        (operand->modifiers & (Operand::kNeg | Operand::kAbs) && !(i.opcode->flags & kSourceModifiers)) ||
        (operand->modifiers & Operand::kSext && i.control.kind != LaneControl::sdwa)) {
        return fmt::format("'{}' can not be a source here", text);
    }
    src = *operand;
    src.dwords = static_cast<std::uint8_t>(form.dwords);
    if (src.kind == Operand::constant && vector) {
        src.row = code.constant_row(src.value);
    }
    note_registers(i, src);
    return {};
}

std::string decode_flags(Instruction& i, InstructionText& text) {
    const std::uint32_t flags = i.opcode->flags;
    const auto bits = [&](std::string_view name, std::uint32_t flag, std::uint8_t& target) -> bool {
        Modifier* modifier = flags & flag ? text.take(name) : nullptr;
        if (modifier == nullptr) {
            return true;
        }
        const auto list = parse_bits(modifier->value);
        if (list) {
            target = static_cast<std::uint8_t>(list->bits);
        }
        return list.has_value();
    };
    // Packed instructions take the high halves for the high result unless told otherwise.
    i.op_sel_hi =
        i.opcode->flags & kOpSel && i.opcode->form.find_first_of("pPQ") != std::string_view::npos ? 7 : 0;
    if (!bits("op_sel", kOpSel | kHalf, i.op_sel) || !bits("op_sel_hi", kOpSel, i.op_sel_hi) ||
        !bits("neg_lo", kNegPacked, i.neg_lo) || !bits("neg_hi", kNegPacked, i.neg_hi)) {
        return "a list of bits is malformed";
    }
    if (flags & kClampOmod) {
        i.clamp = text.take("clamp") != nullptr;
    }
    if (flags & kIntClamp && text.take("clamp") != nullptr) {
        // The saturating form is a table entry of its own.
        i.opcode = find_opcode(fmt::format("{} clamp", i.opcode->name));
        i.run = i.opcode->handler;
    }
    if (flags & kClampOmod) {
        if (const Modifier* multiply = text.take("mul")) {
            i.omod = multiply->value == "2" ? 1 : multiply->value == "4" ? 2 : 0xff;
        } else if (const Modifier* divide = text.take("div")) {
            i.omod = divide->value == "2" ? 3 : 0xff;
        }
        if (i.omod == 0xff) {
            return "an output multiplier is unknown";
        }
    }
    if (flags & kBitTable) {
        const Modifier* table = text.take("bitop3");
        const auto value = table != nullptr ? parse_number(table->value) : 0;
        if (!value || *value < 0 || *value > 255) {
            return "bitop3 needs a table of eight bits";
        }
        i.offset = static_cast<std::int32_t>(*value);
    }
    return {};
}

// The high half of a constant is what no public source settles, unless the halves are equal.
std::string check_packed_constants(const Instruction& i) {
    const std::string_view form = i.opcode->form;
    const std::string_view sources = form.substr(form.find(':') + 1);
    for (unsigned n = 0; n < sources.size() && n < 3; ++n) {
        if (i.src[n].kind != Operand::constant ||
            std::string_view("pPQ").find(sources[n]) == std::string_view::npos) {
            continue;
        }
        const bool high = (i.op_sel >> n & 1) || (sources[n] != 'Q' && (i.op_sel_hi >> n & 1));
        const std::uint32_t value = i.src[n].row[0];
        const bool same = sources[n] == 'p' ? value >> 16 == (value & 0xffff) : value == 0;
        if (high && !same) {
            return "the high half of a constant is not known";
        }
    }
    return {};
}

}  // namespace

const std::uint32_t* Code::constant_row(std::uint64_t value) {
    auto& row = constants[value];
    if (row == nullptr) {
        row = std::make_unique<std::uint32_t[]>(2 * kLanes);
        for (unsigned lane = 0; lane < kLanes; ++lane) {
            row[lane] = static_cast<std::uint32_t>(value);
            row[kLanes + lane] = static_cast<std::uint32_t>(value >> 32);
        }
    }
    return row.get();
}

void note_registers(Instruction& i, const Operand& o) {
    const auto raise = [](std::uint32_t& needs, unsigned end) { needs = needs < end ? end : needs; };
    if (o.kind == Operand::vgpr && o.index < kAccRow) {
        raise(i.needs_v, o.index + o.dwords);
    } else if (o.kind == Operand::vgpr && o.index < kScratchRow) {
        raise(i.needs_a, o.index - kAccRow + o.dwords);
    } else if (o.kind == Operand::sgpr && o.index < kNumSgprs) {
        raise(i.needs_s, o.index + o.dwords);
    }
}

void run_unknown(Wave&, const Instruction& i) {
    fault(-1, "the instruction is not known: {}", i.reason);
}

std::string decode_operands(Code& code, Instruction& i, InstructionText& text) {
    const std::string_view form = i.opcode->form;
    const std::size_t colon = form.find(':');
    std::size_t next = 0;
    for (std::size_t n = 0; n < colon; ++n) {
        if (next >= text.operands.size()) {
            return "a destination is missing";
        }
        if (auto reason = decode_destination(i, form[n], text.operands[next++], n == 0 ? i.dst : i.dst2);
            !reason.empty()) {
            return reason;
        }
    }
    for (std::size_t n = 0; n + colon + 1 < form.size(); ++n) {
        const char letter = form[colon + 1 + n];
        if (letter == '+') {
            i.src[n] = i.dst;
            continue;
        }
        if (next >= text.operands.size()) {
            return "a source is missing";
        }
        if (auto reason = decode_source(code, i, letter, text.operands[next++], i.src[n]); !reason.empty()) {
            return reason;
        }
    }
    if (next != text.operands.size()) {
        return fmt::format("'{}' is one operand too many", text.operands[next]);
    }
    if (auto reason = decode_flags(i, text); !reason.empty()) {
        return reason;
    }
    return check_packed_constants(i);
}

void decode_listing(Code& code, const std::vector<compile::ListingLine>& lines, std::uint32_t text_bytes) {
    code.at_offset.assign(text_bytes / 4, -1);
    code.instructions.resize(lines.size());
    for (std::size_t n = 0; n < lines.size(); ++n) {
        if (lines[n].offset / 4 < code.at_offset.size()) {
            code.at_offset[lines[n].offset / 4] = static_cast<std::int32_t>(n);
        }
    }
    for (std::size_t n = 0; n < lines.size(); ++n) {
        Instruction& i = code.instructions[n];
        i.text = lines[n].text;
        i.text_offset = lines[n].offset;
        InstructionText text = split_instruction(lines[n].text);
        std::string reason;
        i.opcode = find_opcode(text.mnemonic);
        if (i.opcode == nullptr) {
            reason = fmt::format("no mnemonic '{}'", text.mnemonic);
        } else {
            i.run = i.opcode->handler;
            i.category = i.opcode->category;
            i.offset1 = static_cast<std::int32_t>(lines[n].offset + 4 * lines[n].num_words);  // for branches
            reason = i.opcode->form.starts_with('!') ? decode_family(code, i, text)
                                                     : decode_lane_control(code, i, text);
        }
        if (reason.empty()) {
            if (const Modifier* modifier = text.untaken()) {
                reason = fmt::format("modifier '{}{}{}'", modifier->name, modifier->value.empty() ? "" : ":",
                                     modifier->value);
            }
        }
        if (!reason.empty()) {
            i.run = run_unknown;
            i.reason = code.reasons.emplace_back(std::move(reason));
            i.needs_v = i.needs_a = i.needs_s = 0;
        }
    }
}

}  // namespace kiln::sim
