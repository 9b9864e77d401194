// What is wrong with a shape table, and where a person finds it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace kiln::tables {

// Line and column count from 1. A column is a Unicode code point: a tab is one, "é" is one.
struct Position {
    std::size_t line = 1;
    std::size_t column = 1;

    friend auto operator<=>(const Position&, const Position&) = default;
};

struct Fault {
    std::string source;   // the name that the text came with: a path
    Position position;    // of the value, or of a member's name where the name is what is wrong
    std::string pointer;  // JSON pointer (RFC 6901), or a column of a CSV file; "" is the whole document
    std::string expected;
    std::string found;

    // "shapes/linear.json:12:20: /rows/0/buckets/1/max_m: expected more than 16, found 8"
    [[nodiscard]] std::string text() const;
};

// All faults in one error, a line each; for callers that take a table whole or not at all.
[[nodiscard]] Error to_error(const std::vector<Fault>& faults);

}  // namespace kiln::tables
