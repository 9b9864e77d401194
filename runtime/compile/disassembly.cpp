#include "runtime/compile/disassembly.hpp"

#include <cstring>
#include <iterator>

#include <fmt/format.h>

namespace kiln::compile {
namespace {

constexpr std::size_t kWordBytes = 4;
constexpr std::size_t kMostWords = 4;

}  // namespace

Result<std::string> format_code_lines(ByteView code, const std::vector<Instruction>& instructions) {
    std::string lines;
    lines.reserve(instructions.size() * 56);
    std::size_t offset = 0;
    for (const auto& instruction : instructions) {
        const std::size_t bytes = instruction.num_words * kWordBytes;
        if (bytes == 0 || bytes > kMostWords * kWordBytes || bytes > code.size() - offset) {
            return fail(ErrorCode::internal, Stage::compile,
                        fmt::format("disassembly: an instruction of {} bytes at {} of {}", bytes, offset,
                                    code.size()));
        }
        fmt::format_to(std::back_inserter(lines), "{}", offset);
        for (std::size_t at = offset; at < offset + bytes; at += kWordBytes) {
            std::uint32_t word = 0;
            std::memcpy(&word, code.data() + at, sizeof word);
            fmt::format_to(std::back_inserter(lines), " {:08x}", word);
        }
        fmt::format_to(std::back_inserter(lines), " {}\n", instruction.text);
        offset += bytes;
    }
    if (offset != code.size()) {
        return fail(ErrorCode::internal, Stage::compile,
                    fmt::format("disassembly: covers {} of {} bytes", offset, code.size()));
    }
    return lines;
}

}  // namespace kiln::compile
