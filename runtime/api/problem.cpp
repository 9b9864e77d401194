#include "runtime/api/problem.hpp"

#include <utility>

namespace kiln::api {

void ProblemBuilder::note_unknown(const char* field, std::int32_t value, std::size_t most) {
    if (unknown_.empty()) {
        unknown_ = fmt::format("{}: expected a value of its enum, 0 to {}, found {}", field, most, value);
    }
}

Result<operators::Problem> ProblemBuilder::take(const operators::Operator& op) {
    if (!unknown_.empty()) {
        return fail(ErrorCode::invalid_argument, Stage::configure, fmt::format("{} {}", op.name(), unknown_));
    }
    return operators::complete(op, std::move(problem_));
}

}  // namespace kiln::api
