// The families with a syntax of their own: branches, memory of all kinds, matrix instructions.
#include <fmt/format.h>

#include "runtime/sim/access.hpp"
#include "runtime/sim/atomics.hpp"
#include "runtime/sim/decode.hpp"
#include "runtime/sim/fault.hpp"
#include "runtime/sim/matrix.hpp"

namespace kiln::sim {
namespace {

constexpr unsigned kAnyWidth = 0;

// One operand that must be of that kind and width; the reason when it is not.
std::string take(Instruction& i, const InstructionText& text, std::size_t index, Operand::Kind kind,
                 unsigned dwords, Operand& operand) {
    if (index >= text.operands.size()) {
        return "an operand is missing";
    }
    const auto parsed = parse_operand(text.operands[index], Type::b32);
    if (!parsed || parsed->kind != kind || (dwords != kAnyWidth && parsed->dwords != dwords) ||
        parsed->modifiers != 0) {
        return fmt::format("operand '{}'", text.operands[index]);
    }
    operand = *parsed;
    note_registers(i, operand);
    return {};
}

// The first non-empty reason.
template <class... Reasons>
std::string first_of(Reasons... reasons) {
    std::string result;
    ((result.empty() ? void(result = std::move(reasons)) : void()), ...);
    return result;
}

std::string take_offset(InstructionText& text, std::string_view name, std::int32_t& offset) {
    if (const Modifier* modifier = text.take(name)) {
        const auto number = parse_number(modifier->value);
        if (!number) {
            return fmt::format("{} '{}'", name, modifier->value);
        }
        offset = static_cast<std::int32_t>(*number);
    }
    return {};
}

// How far an access goes. Streaming changes nothing here.
void take_cache_policy(Instruction& i, InstructionText& text) {
    i.sc0 = text.take("sc0") != nullptr;
    i.sc1 = text.take("sc1") != nullptr;
    (void)text.take("nt");
}

bool is_text(const InstructionText& text, std::size_t index, std::string_view expected) {
    return index < text.operands.size() && text.operands[index] == expected;
}

std::string count_is(const InstructionText& text, std::size_t count) {
    return text.operands.size() == count ? std::string{} : fmt::format("{} operands", text.operands.size());
}

bool is_atomic(const Instruction& i) {
    return i.opcode->name.find("_atomic_") != std::string_view::npos;
}
bool is_store(const Instruction& i) {
    return i.opcode->name.find("_store_") != std::string_view::npos;
}

// The data of a load, store or atomic, and where in the operand list the address starts.
std::string take_data(Instruction& i, InstructionText& text, std::size_t& address) {
    if (is_atomic(i)) {
        const AtomicOp op = unpack_atomic(i.opcode->parameter);
        const unsigned dwords = op.bytes / 4, data = op.kind == AtomicKind::cmpswap ? 2 * dwords : dwords;
        i.returns = text.take("sc0") != nullptr;
        address = i.returns ? 1 : 0;
        // Buffers name the data first, and the result is the same register.
        if (i.opcode->form == "!buffer") {
            address = 1;
            const std::string reason = take(i, text, 0, Operand::vgpr, data, i.src[3]);
            i.dst = i.src[3];
            return reason;
        }
        return first_of(i.returns ? take(i, text, 0, Operand::vgpr, dwords, i.dst) : std::string{},
                        take(i, text, address + 1, Operand::vgpr, data, i.src[3]));
    }
    const unsigned dwords = unpack_shape(i.opcode->parameter).dwords();
    if (is_store(i) && i.opcode->form != "!buffer") {
        address = 0;
        return take(i, text, 1, Operand::vgpr, dwords, i.src[3]);
    }
    address = 1;
    return take(i, text, 0, Operand::vgpr, dwords, is_store(i) ? i.src[3] : i.dst);
}

std::string decode_global(Instruction& i, InstructionText& text, bool flat, bool to_lds) {
    std::size_t address = 0;
    if (!to_lds) {
        if (auto reason = take_data(i, text, address); !reason.empty()) {
            return reason;
        }
    }
    take_cache_policy(i, text);
    const bool data_after = !to_lds && (is_store(i) || is_atomic(i));
    const std::size_t scalar = address + 1 + (data_after ? 1 : 0);
    if (auto reason = take_offset(text, "offset", i.offset); !reason.empty()) {
        return reason;
    }
    if (flat) {
        return first_of(take(i, text, address, Operand::vgpr, 2, i.src[0]), count_is(text, scalar));
    }
    if (auto reason = count_is(text, scalar + 1); !reason.empty()) {
        return reason;
    }
    if (is_text(text, scalar, "off")) {
        return take(i, text, address, Operand::vgpr, 2, i.src[0]);
    }
    return first_of(take(i, text, address, Operand::vgpr, 1, i.src[0]),
                    take(i, text, scalar, Operand::sgpr, 2, i.src[1]));
}

std::string decode_buffer(Instruction& i, InstructionText& text) {
    std::size_t address = 0;
    i.to_lds = text.take("lds") != nullptr;
    if (!i.to_lds) {
        if (auto reason = take_data(i, text, address); !reason.empty()) {
            return reason;
        }
    }
    take_cache_policy(i, text);
    i.offen = text.take("offen") != nullptr;
    if (auto reason = first_of(take_offset(text, "offset", i.offset), count_is(text, address + 3),
                               take(i, text, address + 1, Operand::sgpr, 4, i.src[1]));
        !reason.empty()) {
        return reason;
    }
    if (i.offen) {
        if (auto reason = take(i, text, address, Operand::vgpr, 1, i.src[0]); !reason.empty()) {
            return reason;
        }
    } else if (!is_text(text, address, "off")) {
        return fmt::format("operand '{}'", text.operands[address]);
    }
    const auto scalar = parse_operand(text.operands[address + 2], Type::b32);
    if (!scalar || (scalar->kind != Operand::sgpr && scalar->kind != Operand::constant) ||
        scalar->dwords != 1) {
        return fmt::format("operand '{}'", text.operands[address + 2]);
    }
    i.src[2] = *scalar;
    note_registers(i, i.src[2]);
    return {};
}

std::string decode_smem(Instruction& i, InstructionText& text) {
    const unsigned base = i.opcode->name.starts_with("s_buffer") ? 4 : 2;
    (void)text.take("glc");
    if (auto reason = first_of(take(i, text, 0, Operand::sgpr, i.opcode->parameter / 4, i.dst),
                               take(i, text, 1, Operand::sgpr, base, i.src[0]), count_is(text, 3),
                               take_offset(text, "offset", i.offset));
        !reason.empty()) {
        return reason;
    }
    if (const auto number = parse_number(text.operands[2])) {
        i.offset += static_cast<std::int32_t>(*number);
        return {};
    }
    return take(i, text, 2, Operand::sgpr, 1, i.src[1]);
}

std::string decode_swizzle(InstructionText& text, std::int32_t& control) {
    Modifier* modifier = text.take("offset");
    if (modifier == nullptr) {
        control = 0;
        return {};
    }
    std::string_view v = modifier->value;
    if (const auto number = parse_number(v)) {
        control = static_cast<std::int32_t>(*number);
        return *number >= 0 && *number < 0xc000 ? std::string{} : "the swizzle mode";
    }
    const std::string reason = fmt::format("swizzle '{}'", v);
    if (!v.starts_with("swizzle(") || !v.ends_with(')')) {
        return reason;
    }
    v = v.substr(8, v.size() - 9);
    const std::size_t comma = v.find(',');
    const std::string_view mode = v.substr(0, comma);
    std::vector<std::string_view> rest;
    for (std::size_t at = comma; at != v.npos;) {
        const std::size_t next = v.find(',', at + 1);
        std::string_view part = v.substr(at + 1, next == v.npos ? v.npos : next - at - 1);
        while (part.starts_with(' ')) {
            part.remove_prefix(1);
        }
        rest.push_back(part);
        at = next;
    }
    const auto masks = [&](unsigned keep, unsigned set, unsigned flip) {
        control = static_cast<std::int32_t>(keep | set << 5 | flip << 10);
        return std::string{};
    };
    const auto number = [&](std::size_t n) -> unsigned {
        const auto value = n < rest.size() ? parse_number(rest[n]) : std::nullopt;
        return value ? static_cast<unsigned>(*value) : 99;
    };
    if (mode == "QUAD_PERM" && rest.size() == 4) {
        control = 0x8000;
        for (unsigned n = 0; n < 4; ++n) {
            if (number(n) > 3) {
                return reason;
            }
            control |= static_cast<std::int32_t>(number(n) << (2 * n));
        }
        return {};
    }
    if (mode == "BITMASK_PERM" && rest.size() == 1 && rest[0].size() == 7) {
        unsigned keep = 0, set = 0, flip = 0;
        for (unsigned n = 0; n < 5; ++n) {
            const char c = rest[0][5 - n];
            keep |= (c == 'p' || c == 'i' ? 1u : 0) << n;
            set |= (c == '1' ? 1u : 0) << n;
            flip |= (c == 'i' ? 1u : 0) << n;
        }
        return masks(keep, set, flip);
    }
    const unsigned size = number(0);
    if (size > 32 || (size & (size - 1)) != 0 || size == 0) {
        return reason;
    }
    if (mode == "SWAP") {
        return masks(31, 0, size);
    }
    if (mode == "REVERSE") {
        return masks(31, 0, size - 1);
    }
    if (mode == "BROADCAST" && rest.size() == 2 && number(1) < size) {
        return masks(31 & ~(size - 1), number(1), 0);
    }
    return reason;
}

std::string decode_ds(Instruction& i, InstructionText& text, std::string_view form) {
    const auto vector = [&](std::size_t index, unsigned dwords, Operand& o) {
        return take(i, text, index, Operand::vgpr, dwords, o);
    };
    i.offset1 = 0;
    if (form == "!ds_read") {
        return first_of(vector(0, unpack_shape(i.opcode->parameter).dwords(), i.dst), vector(1, 1, i.src[0]),
                        count_is(text, 2), take_offset(text, "offset", i.offset));
    }
    if (form == "!ds_write") {
        return first_of(vector(0, 1, i.src[0]),
                        vector(1, unpack_shape(i.opcode->parameter).dwords(), i.src[1]), count_is(text, 2),
                        take_offset(text, "offset", i.offset));
    }
    if (form == "!ds_read2") {
        return first_of(vector(0, i.opcode->parameter / 2, i.dst), vector(1, 1, i.src[0]), count_is(text, 2),
                        take_offset(text, "offset0", i.offset), take_offset(text, "offset1", i.offset1));
    }
    if (form == "!ds_write2") {
        const unsigned dwords = i.opcode->parameter / 4;
        return first_of(vector(0, 1, i.src[0]), vector(1, dwords, i.src[1]), vector(2, dwords, i.src[2]),
                        count_is(text, 3), take_offset(text, "offset0", i.offset),
                        take_offset(text, "offset1", i.offset1));
    }
    if (form == "!ds_permute") {
        return first_of(vector(0, 1, i.dst), vector(1, 1, i.src[0]), vector(2, 1, i.src[1]),
                        count_is(text, 3), take_offset(text, "offset", i.offset));
    }
    if (form == "!ds_swizzle") {
        return first_of(vector(0, 1, i.dst), vector(1, 1, i.src[0]), count_is(text, 2),
                        decode_swizzle(text, i.offset));
    }
    const AtomicOp op = unpack_atomic(i.opcode->parameter);
    const unsigned dwords = op.bytes / 4;
    i.returns = form == "!ds_atomic_rtn";
    const std::size_t first = i.returns ? 1 : 0, sources = op.kind == AtomicKind::cmpswap ? 2 : 1;
    return first_of(i.returns ? vector(0, dwords, i.dst) : std::string{}, vector(first, 1, i.src[0]),
                    vector(first + 1, dwords, i.src[1]),
                    sources == 2 ? vector(first + 2, dwords, i.src[2]) : std::string{},
                    count_is(text, first + 1 + sources), take_offset(text, "offset", i.offset));
}

std::string decode_matrix(Code& code, Instruction& i, InstructionText& text) {
    unsigned format[2] = {};
    for (unsigned n = 0; n < 2; ++n) {
        if (const Modifier* modifier = text.take(n == 0 ? "cbsz" : "blgp")) {
            const auto number = parse_number(modifier->value);
            if (!number || *number < 0 || *number > 7) {
                return "cbsz or blgp";
            }
            format[n] = static_cast<unsigned>(*number);
        }
    }
    const auto op = numeric::find_matrix_op(text.mnemonic, format[0], format[1]);
    if (!op) {
        return fmt::format("no matrix instruction '{}' with cbsz {} and blgp {}", text.mnemonic, format[0],
                           format[1]);
    }
    MatrixInstruction& m = code.matrices.emplace_back();
    m.op = *op;
    m.cycles = op->cycles();
    i.matrix = &m;
    if (auto reason = first_of(take(i, text, 0, Operand::vgpr, op->cd_registers(), i.dst),
                               take(i, text, 1, Operand::vgpr, op->a_registers(), i.src[0]),
                               take(i, text, 2, Operand::vgpr, op->b_registers(), i.src[1]),
                               count_is(text, op->scaled ? 6 : 4));
        !reason.empty()) {
        return reason;
    }
    const auto c = parse_operand(text.operands[3], Type::f32);
    if (!c || (c->kind == Operand::vgpr ? c->dwords != op->cd_registers() : c->kind != Operand::constant)) {
        return fmt::format("operand '{}'", text.operands[3]);
    }
    i.src[2] = *c;
    if (c->kind == Operand::constant) {
        i.src[2].row = code.constant_row(c->value);
    }
    note_registers(i, i.src[2]);
    if (!op->scaled) {
        return {};
    }
    unsigned select[2] = {};
    for (unsigned n = 0; n < 2; ++n) {
        if (const Modifier* modifier = text.take(n == 0 ? "op_sel" : "op_sel_hi")) {
            const auto list = parse_bits(modifier->value);
            if (!list || list->count != 3 || list->bits > 3) {
                return "op_sel or op_sel_hi";
            }
            select[n] = list->bits;
        }
        const auto scale = parse_operand(text.operands[4 + n], Type::b32);
        if (!scale || scale->dwords != 1 || scale->modifiers != 0) {
            return fmt::format("operand '{}'", text.operands[4 + n]);
        }
        m.scales[n] = *scale;
        if (scale->kind == Operand::constant) {
            m.scales[n].row = code.constant_row(scale->value);
        }
        note_registers(i, m.scales[n]);
    }
    for (unsigned n = 0; n < 2; ++n) {
        m.scale_byte[n] = (select[0] >> n & 1) + 2 * (select[1] >> n & 1);
    }
    return {};
}

std::string decode_branch(Code& code, Instruction& i, InstructionText& text) {
    const auto number = text.operands.size() == 1 ? parse_number(text.operands[0]) : std::nullopt;
    if (!number || *number < -0x8000 || *number > 0xffff) {
        return "the branch's operand";
    }
    // Dwords from the instruction that follows, whose offset the decoder left here.
    i.target = code.index_of(static_cast<std::uint64_t>(i.offset1 + 4 * static_cast<std::int16_t>(*number)));
    return {};
}

// Counters to wait for. Everything but stores has always arrived already: `offset` becomes how many vector
// memory instructions may stay outstanding, negative when the counter is not waited for.
std::string decode_waits(Instruction& i, InstructionText& text) {
    std::vector<std::string_view> words = text.operands;
    for (Modifier& modifier : text.modifiers) {
        words.push_back(modifier.name);
        modifier.used = true;
    }
    i.offset = -1;
    for (const std::string_view word : words) {
        const std::size_t open = word.find('(');
        const std::string_view counter = word.substr(0, open);
        const bool named =
            word.ends_with(')') && (counter == "vmcnt" || counter == "expcnt" || counter == "lgkmcnt");
        const auto number = parse_number(named ? word.substr(open + 1, word.size() - open - 2) : word);
        if (!number || *number < 0) {
            return fmt::format("operand '{}'", word);
        }
        // A bare number holds all counters, that of vector memory in bits 0 to 3, 14 and 15; all ones wait
        // for nothing.
        constexpr std::int32_t kNone = 63;
        const auto n = static_cast<std::int32_t>(*number);
        const std::int32_t left = named ? n : (n & 15) | (n >> 14 & 3) << 4;
        if (counter == "vmcnt" || (!named && left != kNone)) {
            i.offset = left;
        }
    }
    return {};
}

// hwreg(NAME or number[, first bit, bits]): packed as id | first << 6 | (bits - 1) << 11.
std::string decode_hwreg(Instruction& i, InstructionText& text) {
    const bool set = i.opcode->name.starts_with("s_set");
    if (auto reason = count_is(text, 2); !reason.empty()) {
        return reason;
    }
    std::string_view v = text.operands[set ? 0 : 1];
    if (!v.starts_with("hwreg(") || !v.ends_with(')')) {
        return fmt::format("operand '{}'", v);
    }
    v = v.substr(6, v.size() - 7);
    unsigned field[3] = {0, 0, 32};
    for (unsigned n = 0; n < 3 && !v.empty(); ++n) {
        const std::size_t comma = v.find(',');
        std::string_view part = v.substr(0, comma);
        while (part.starts_with(' ')) {
            part.remove_prefix(1);
        }
        v = comma == v.npos ? std::string_view{} : v.substr(comma + 1);
        const auto number = part == "HW_REG_MODE" ? 1 : part == "HW_REG_XCC_ID" ? 20 : parse_number(part);
        if (!number || *number < 0 || *number > 63) {
            return fmt::format("hardware register '{}'", part);
        }
        field[n] = static_cast<unsigned>(*number);
    }
    if (field[2] == 0 || field[1] + field[2] > 32) {
        return "the field of a hardware register";
    }
    i.offset = static_cast<std::int32_t>(field[0] | field[1] << 6 | (field[2] - 1) << 11);
    if (!set) {
        return take(i, text, 0, Operand::sgpr, 1, i.dst);
    }
    const auto source = parse_operand(text.operands[1], Type::b32);
    if (!source || (source->kind != Operand::sgpr && source->kind != Operand::constant) ||
        source->dwords != 1) {
        return fmt::format("operand '{}'", text.operands[1]);
    }
    i.src[0] = *source;
    note_registers(i, i.src[0]);
    return {};
}

}  // namespace

std::string decode_family(Code& code, Instruction& i, InstructionText& text) {
    const std::string_view form = i.opcode->form;
    if (text.dpp || text.sdwa) {
        return "the instruction has no such form";
    }
    if (form == "!waits") {
        return decode_waits(i, text);
    }
    if (form == "!branch") {
        return decode_branch(code, i, text);
    }
    if (form == "!hwreg") {
        return decode_hwreg(i, text);
    }
    if (form == "!smem") {
        return decode_smem(i, text);
    }
    if (form == "!global" || form == "!flat" || form == "!global_lds") {
        return decode_global(i, text, form == "!flat", form == "!global_lds");
    }
    if (form == "!buffer") {
        return decode_buffer(i, text);
    }
    if (form == "!cache") {
        // Without operands the first of its modifiers looks like one.
        take_cache_policy(i, text);
        const bool sc0 = is_text(text, 0, "sc0"), sc1 = is_text(text, 0, "sc1"), nt = is_text(text, 0, "nt");
        i.sc0 |= sc0;
        i.sc1 |= sc1;
        return count_is(text, sc0 || sc1 || nt ? 1 : 0);
    }
    if (form == "!mfma") {
        return decode_matrix(code, i, text);
    }
    return decode_ds(i, text, form);
}

}  // namespace kiln::sim
