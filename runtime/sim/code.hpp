// The decoded instructions of one code object, or of a few lines of text.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "runtime/sim/instruction.hpp"
#include "runtime/sim/matrix.hpp"

namespace kiln::sim {

struct Code {
    std::string listing;                    // what the views in the instructions point into
    std::vector<Instruction> instructions;  // in the order of their offsets
    std::vector<std::int32_t> at_offset;  // by offset / 4: index of the instruction that starts there, or -1
    std::uint64_t text_address = 0;       // where .text is in device memory
    std::deque<Instruction> wrapped;      // Instruction::inner
    std::deque<MatrixInstruction> matrices;                               // Instruction::matrix
    std::deque<std::string> reasons;                                      // Instruction::reason
    std::map<std::uint64_t, std::unique_ptr<std::uint32_t[]>> constants;  // the rows of vector constants

    Code() = default;
    Code(const Code&) = delete;
    Code& operator=(const Code&) = delete;

    // The instruction at that byte offset; negative when none starts there.
    [[nodiscard]] std::int32_t index_of(std::uint64_t offset) const {
        return offset % 4 == 0 && offset / 4 < at_offset.size() ? at_offset[offset / 4] : -1;
    }
    // 64 lanes of the low dword, then 64 of the high one.
    const std::uint32_t* constant_row(std::uint64_t value);
};

}  // namespace kiln::sim
