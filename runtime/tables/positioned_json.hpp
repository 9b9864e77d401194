// JSON of which every value knows its place in the text: nlohmann_json's parser, followed token by token.
// For the rooms inside only: the JSON library's types do not leave them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/tables/fault.hpp"

namespace kiln::tables {

// One step of a JSON pointer: "/a~1b" for the member "a/b".
[[nodiscard]] std::string pointer_step(std::string_view member);
[[nodiscard]] std::string pointer_step(std::size_t index);

// The text must outlive the object.
class PositionedJson {
  public:
    // Bounds for what comes from outside: no parser, validator or destructor after this one runs out of
    // stack.
    static constexpr std::size_t kMaxDepth = 32;
    static constexpr std::size_t kMaxString = 1024;  // bytes, of a string or a member's name
    static constexpr std::size_t kMaxValues = 250'000;

    PositionedJson(std::string_view source, std::string_view text);

    // False when the text is no JSON, or breaks a bound: faults() holds why, and document() is of no use.
    [[nodiscard]] bool complete() const { return complete_; }

    // Of two members of one name the first counts; the second is a fault. So is an integer beyond 64 bits
    // with sign.
    [[nodiscard]] const nlohmann::json& document() const { return document_; }
    [[nodiscard]] const std::vector<Fault>& faults() const { return faults_; }

    // The value that the pointer names; null when there is none.
    [[nodiscard]] const nlohmann::json* find(const std::string& pointer) const;

    // Where the value stands, or the name of the member that holds it. The nearest thing around it where
    // nothing stands under that pointer.
    [[nodiscard]] Position value_position(std::string pointer) const;
    [[nodiscard]] Position name_position(const std::string& pointer) const;

    // Offsets of the value's first character and past its last; nothing when there is none.
    struct Extent {
        std::size_t begin = 0, end = 0;
    };
    [[nodiscard]] std::optional<Extent> extent(const std::string& pointer) const;

    // The value as a person wrote it, for messages: "18446744073709551616", "an object of 3 members".
    [[nodiscard]] std::string describe(const std::string& pointer) const;

    [[nodiscard]] Fault fault_at_value(std::string pointer, std::string expected, std::string found) const;
    [[nodiscard]] Fault fault_at_name(std::string pointer, std::string expected, std::string found) const;

  private:
    friend class PositionedJsonBuilder;

    struct Place {
        std::size_t name = 0;   // offset of the member's name; of the value where it has none
        std::size_t value = 0;  // offset of its first character
        // Offset past a string, number or literal; of an object or array, past its bracket.
        std::size_t end = 0;
    };

    [[nodiscard]] Position position(std::size_t offset) const;
    [[nodiscard]] Fault fault(std::size_t offset, std::string pointer, std::string expected,
                              std::string found) const;

    std::string source_;
    std::string_view text_;
    std::vector<std::size_t> line_starts_;
    nlohmann::json document_;
    std::unordered_map<std::string, Place> places_;  // by pointer
    std::vector<Fault> faults_;
    bool complete_ = false;
};

}  // namespace kiln::tables
