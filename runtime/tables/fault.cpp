#include "runtime/tables/fault.hpp"

#include <fmt/format.h>

namespace kiln::tables {

std::string Fault::text() const {
    return fmt::format("{}:{}:{}: {}: expected {}, found {}", source, position.line, position.column,
                       pointer.empty() ? "the document" : pointer, expected, found);
}

Error to_error(const std::vector<Fault>& faults) {
    std::vector<std::string> lines;
    for (const auto& fault : faults) {
        lines.push_back(fault.text());
    }
    return {ErrorCode::bad_input, Stage::table, fmt::format("{}", fmt::join(lines, "\n"))};
}

}  // namespace kiln::tables
