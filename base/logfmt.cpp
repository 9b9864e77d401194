#include "base/logfmt.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

namespace kiln::log {
namespace {

struct Character {
    std::size_t length = 1;  // bytes
    char32_t value = 0;
    bool valid = false;
};

// The first character of a text that is not empty; one invalid byte where that is no UTF-8.
Character first_character(std::string_view text) {
    const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) {
        return {1, lead, true};
    }
    const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() < length) {
        return {};
    }
    char32_t value = lead & (0x7fu >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80) {
            return {};
        }
        value = value << 6 | (byte(i) & 0x3fu);
    }
    constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = value >= 0xd800 && value <= 0xdfff;
    if (value < kLeast[length] || surrogate || value > 0x10ffff) {
        return {};
    }
    return {length, value, true};
}

bool must_be_escaped(char32_t value) {
    return value < 0x20 || (value >= 0x7f && value < 0xa0) ||        // C0, DEL, C1
           value == 0x061c || value == 0x200e || value == 0x200f ||  // direction marks
           (value >= 0x2028 && value <= 0x202e) ||                   // separators, embeddings, overrides
           (value >= 0x2066 && value <= 0x2069);                     // isolates
}

enum class Escapes { ours, json };

void append_escaped(std::string& text, const Character& character, unsigned char first_byte,
                    Escapes escapes) {
    switch (character.value) {
        case '\n':
            text += "\\n";
            return;
        case '\r':
            text += "\\r";
            return;
        case '\t':
            text += "\\t";
            return;
        default:
            if (escapes == Escapes::json) {
                text += character.valid
                            ? fmt::format("\\u{:04x}", static_cast<std::uint32_t>(character.value))
                            : "\\ufffd";
                return;
            }
            text += character.length == 1
                        ? fmt::format("\\x{:02x}", first_byte)
                        : fmt::format("\\u{:04x}", static_cast<std::uint32_t>(character.value));
    }
}

// `special` judges characters that need more than that: it appends what stands for one, or answers false.
template <class Special>
void append_safe(std::string& line, std::string_view text, const Special& special,
                 Escapes escapes = Escapes::ours) {
    while (!text.empty()) {
        const Character character = first_character(text);
        if (!character.valid || !special(character.value)) {
            if (!character.valid || must_be_escaped(character.value)) {
                append_escaped(line, character, static_cast<unsigned char>(text.front()), escapes);
            } else {
                line += text.substr(0, character.length);
            }
        }
        text.remove_prefix(character.length);
    }
}

bool is_bare(char c) {
    return c > ' ' && c <= '~' && c != '"' && c != '=' && c != '\\';
}

void append_quoted(std::string& line, std::string_view value, Escapes escapes) {
    const auto special = [&line](char32_t c) {
        const bool quoted = c == '"' || c == '\\';
        if (quoted) {
            line += '\\';
            line += static_cast<char>(c);
        }
        return quoted;
    };
    line += '"';
    append_safe(line, value, special, escapes);
    line += '"';
}

}  // namespace

void append_logfmt(std::string& line, std::string_view value) {
    if (!value.empty() && std::all_of(value.begin(), value.end(), is_bare)) {
        line += value;
    } else {
        append_quoted(line, value, Escapes::ours);
    }
}

bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const Character character = first_character(text);
        if (!character.valid) {
            return false;
        }
        text.remove_prefix(character.length);
    }
    return true;
}

void append_json(std::string& line, std::string_view value) {
    append_quoted(line, value, Escapes::json);
}

void append_sentence(std::string& text, std::string_view sentence) {
    sentence = sentence.substr(0, sentence.find_last_not_of("\r\n") + 1);
    append_safe(text, sentence, [&text](char32_t c) {
        if (c == '\n') {
            text += "\n  | ";
        }
        return c == '\n';
    });
}

}  // namespace kiln::log
