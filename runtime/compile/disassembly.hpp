// The lines of code of a listing (listing.hpp), from what a disassembler says. Apart from the rest of the
// listing because the worker writes them and does without a digest library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace kiln::compile {

// One instruction as a disassembler gives it.
struct Instruction {
    std::uint8_t num_words = 0;  // 1 to 4
    std::string text;
};

// The lines for `code`: `instructions` in order, which must cover it exactly. The encoding comes from the
// bytes themselves.
[[nodiscard]] Result<std::string> format_code_lines(ByteView code,
                                                    const std::vector<Instruction>& instructions);

}  // namespace kiln::compile
