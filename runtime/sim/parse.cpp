#include "runtime/sim/parse.hpp"

#include <bit>
#include <charconv>
#include <cstring>

namespace kiln::sim {
namespace {

std::string_view trim(std::string_view text) {
    while (!text.empty() && text.front() == ' ') {
        text.remove_prefix(1);
    }
    while (!text.empty() && text.back() == ' ') {
        text.remove_suffix(1);
    }
    return text;
}

// Splits at `separator` outside of brackets and parentheses.
std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    int depth = 0;
    std::size_t begin = 0;
    for (std::size_t n = 0; n <= text.size(); ++n) {
        const char c = n < text.size() ? text[n] : separator;
        depth += c == '[' || c == '(' ? 1 : c == ']' || c == ')' ? -1 : 0;
        if (n == text.size() || (c == separator && depth == 0)) {
            const std::string_view part = trim(text.substr(begin, n - begin));
            if (!part.empty()) {
                parts.push_back(part);
            }
            begin = n + 1;
        }
    }
    return parts;
}

bool drop_suffix(std::string_view& text, std::string_view suffix) {
    if (!text.ends_with(suffix)) {
        return false;
    }
    text.remove_suffix(suffix.size());
    return true;
}

// "4" or "4:7", after the letter; with brackets for the latter.
std::optional<Operand> parse_register(std::string_view text, Operand::Kind kind, unsigned base,
                                      unsigned limit) {
    std::string_view first = text, last = text;
    if (text.starts_with('[') && text.ends_with(']')) {
        text = text.substr(1, text.size() - 2);
        const std::size_t colon = text.find(':');
        first = text.substr(0, colon);
        last = colon == text.npos ? first : text.substr(colon + 1);
    }
    const auto low = parse_number(first), high = parse_number(last);
    if (!low || !high || *low < 0 || *high < *low || *high >= limit || *high - *low >= 32) {
        return std::nullopt;
    }
    Operand o;
    o.kind = kind;
    o.index = static_cast<std::uint16_t>(base + static_cast<unsigned>(*low));
    o.dwords = static_cast<std::uint8_t>(*high - *low + 1);
    return o;
}

struct Special {
    std::string_view name;
    Operand::Kind kind;
    unsigned index, dwords;
};
constexpr Special kSpecial[] = {
    {"vcc", Operand::sgpr, kVcc, 2},
    {"vcc_lo", Operand::sgpr, kVcc, 1},
    {"vcc_hi", Operand::sgpr, kVcc + 1, 1},
    {"exec", Operand::sgpr, kExec, 2},
    {"exec_lo", Operand::sgpr, kExec, 1},
    {"exec_hi", Operand::sgpr, kExec + 1, 1},
    {"m0", Operand::sgpr, kM0, 1},
    {"flat_scratch", Operand::sgpr, kFlatScratch, 2},
    {"flat_scratch_lo", Operand::sgpr, kFlatScratch, 1},
    {"flat_scratch_hi", Operand::sgpr, kFlatScratch + 1, 1},
    {"scc", Operand::scc, 0, 1},
    {"src_scc", Operand::scc, 0, 1},
    {"src_vccz", Operand::vccz, 0, 1},
    {"src_execz", Operand::execz, 0, 1},
    {"off", Operand::off, 0, 1},
};

// Inline floats as they are printed, with their f16, bf16, f32 and f64 encodings.
struct InlineFloat {
    std::string_view text;
    std::uint32_t f16, bf16, f32;
    std::uint64_t f64;
};
constexpr InlineFloat kInlineFloats[] = {
    {"0.5", 0x3800, 0x3f00, 0x3f000000, 0x3fe0000000000000},
    {"1.0", 0x3c00, 0x3f80, 0x3f800000, 0x3ff0000000000000},
    {"2.0", 0x4000, 0x4000, 0x40000000, 0x4000000000000000},
    {"4.0", 0x4400, 0x4080, 0x40800000, 0x4010000000000000},
};
// 1 / (2 pi), printed with as many digits as the type has.
constexpr InlineFloat kInverseTwoPi = {"0.15", 0x3118, 0x3e23, 0x3e22f983, 0x3fc45f306dc9c882};

std::uint64_t encoding(const InlineFloat& constant, Type type, bool negative) {
    switch (type) {
        case Type::f16:
        case Type::b16:
            return constant.f16 | (negative ? 0x8000u : 0);
        case Type::bf16:
            return constant.bf16 | (negative ? 0x8000u : 0);
        case Type::f32:
        case Type::b32:
            return constant.f32 | (negative ? 0x80000000u : 0);
        default:
            return constant.f64 | (negative ? std::uint64_t{1} << 63 : 0);
    }
}

std::optional<std::uint64_t> parse_constant(std::string_view text, Type type) {
    if (text.find('.') != text.npos) {
        const bool negative = text.starts_with('-');
        const std::string_view magnitude = text.substr(negative);
        for (const InlineFloat& constant : kInlineFloats) {
            if (magnitude == constant.text) {
                return encoding(constant, type, negative);
            }
        }
        if (magnitude.starts_with(kInverseTwoPi.text) && !negative) {
            return encoding(kInverseTwoPi, type, false);
        }
        return std::nullopt;
    }
    const auto number = parse_number(text);
    if (!number) {
        return std::nullopt;
    }
    // Decimal ones are inline integers, sign-extended; hexadecimal ones are 32-bit literals, which a float64
    // operand has as its high half and a signed one extends.
    const bool literal = text.find("0x") != text.npos;
    const auto bits = static_cast<std::uint64_t>(*number);
    switch (type) {
        case Type::f64:
            return literal && bits <= 0xffffffffu ? bits << 32 : bits;
        case Type::i64:
            return literal && bits <= 0xffffffffu ? static_cast<std::uint64_t>(static_cast<std::int64_t>(
                                                        static_cast<std::int32_t>(bits)))
                                                  : bits;
        case Type::b64:
            return bits;
        case Type::f16:
        case Type::b16:
        case Type::bf16:
            return bits & 0xffff;
        default:
            return bits & 0xffffffffu;
    }
}

}  // namespace

Modifier* InstructionText::take(std::string_view name) {
    for (Modifier& modifier : modifiers) {
        if (modifier.name == name) {
            modifier.used = true;
            return &modifier;
        }
    }
    return nullptr;
}

const Modifier* InstructionText::untaken() const {
    for (const Modifier& modifier : modifiers) {
        if (!modifier.used) {
            return &modifier;
        }
    }
    return nullptr;
}

InstructionText split_instruction(std::string_view text) {
    InstructionText result;
    text = trim(text);
    const std::size_t space = text.find(' ');
    result.mnemonic = text.substr(0, space);
    result.dpp = drop_suffix(result.mnemonic, "_dpp");
    result.sdwa = drop_suffix(result.mnemonic, "_sdwa");
    if (!drop_suffix(result.mnemonic, "_e32")) {
        drop_suffix(result.mnemonic, "_e64");
    }
    if (space == text.npos) {
        return result;
    }
    // Operands are separated by commas; what follows the last one after a space is modifiers.
    std::vector<std::string_view> parts = split(text.substr(space), ',');
    if (parts.empty()) {
        return result;
    }
    std::vector<std::string_view> words = split(parts.back(), ' ');
    parts.pop_back();
    result.operands = std::move(parts);
    for (std::size_t n = 0; n < words.size(); ++n) {
        if (n == 0) {
            result.operands.push_back(words[0]);
            continue;
        }
        const std::size_t colon = words[n].find(':');
        result.modifiers.push_back({words[n].substr(0, colon), colon == std::string_view::npos
                                                                   ? std::string_view{}
                                                                   : words[n].substr(colon + 1)});
    }
    return result;
}

std::optional<std::int64_t> parse_number(std::string_view text) {
    const bool negative = text.starts_with('-');
    text.remove_prefix(negative);
    int base = 10;
    if (text.starts_with("0x")) {
        base = 16;
        text.remove_prefix(2);
    }
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty()) {
        return std::nullopt;
    }
    return static_cast<std::int64_t>(negative ? 0 - value : value);
}

std::optional<BitList> parse_bits(std::string_view text) {
    if (!text.starts_with('[') || !text.ends_with(']')) {
        return std::nullopt;
    }
    BitList list;
    for (const std::string_view part : split(text.substr(1, text.size() - 2), ',')) {
        if (part != "0" && part != "1") {
            return std::nullopt;
        }
        list.bits |= (part == "1" ? 1u : 0) << list.count++;
    }
    return list;
}

unsigned type_bits(Type type) {
    switch (type) {
        case Type::b16:
        case Type::f16:
        case Type::bf16:
            return 16;
        case Type::b32:
        case Type::f32:
            return 32;
        default:
            return 64;
    }
}

std::optional<Operand> parse_operand(std::string_view text, Type type) {
    std::uint8_t modifiers = 0;
    // A minus before a register; before a number it is part of the number.
    if (text.starts_with('-') && text.size() > 1 && (text[1] == '|' || (text[1] >= 'a' && text[1] <= 'z'))) {
        modifiers |= Operand::kNeg;
        text.remove_prefix(1);
    }
    if (text.starts_with('|') && text.ends_with('|') && text.size() > 2) {
        modifiers |= Operand::kAbs;
        text = text.substr(1, text.size() - 2);
    }
    if (text.starts_with("sext(") && text.ends_with(')')) {
        modifiers |= Operand::kSext;
        text = text.substr(5, text.size() - 6);
    }
    if (text.starts_with("neg(") && text.ends_with(')')) {
        modifiers |= Operand::kNeg;
        text = text.substr(4, text.size() - 5);
    }
    // lit(0x0): a literal that would also fit an inline constant.
    if (text.starts_with("lit(") && text.ends_with(')')) {
        text = text.substr(4, text.size() - 5);
    }
    std::optional<Operand> result;
    for (const Special& special : kSpecial) {
        if (text == special.name) {
            result.emplace();
            result->kind = special.kind;
            result->index = static_cast<std::uint16_t>(special.index);
            result->dwords = static_cast<std::uint8_t>(special.dwords);
        }
    }
    if (!result && !text.empty()) {
        const std::string_view rest = text.substr(1);
        switch (text[0]) {
            case 'v':
                result = parse_register(rest, Operand::vgpr, 0, 256);
                break;
            case 'a':
                result = parse_register(rest, Operand::vgpr, kAccRow, 256);
                break;
            case 's':
                result = parse_register(rest, Operand::sgpr, 0, kNumSgprs);
                break;
            default:
                if (const auto value = parse_constant(text, type)) {
                    result.emplace();
                    result->kind = Operand::constant;
                    result->value = *value;
                    result->dwords = type_bits(type) == 64 ? 2 : 1;
                }
        }
    }
    if (result) {
        result->modifiers = modifiers;
    }
    return result;
}

}  // namespace kiln::sim
