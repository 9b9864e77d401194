#include "runtime/operators/guards.hpp"

#include <fmt/format.h>

namespace kiln::operators {

Answer<void> check_guards(const Operator& op, const Problem& problem, std::span<const Guard> guards) {
    for (const Guard& guard : guards) {
        if (problem.find(guard.field)->second != guard.served) {
            return declined(guard.decline, Stage::configure,
                            fmt::format("{} {}: {}", op.name(), format_problem(op, problem),
                                        decline_text(guard.decline)));
        }
    }
    return {};
}

std::vector<std::string_view> type_words(std::string_view served) {
    std::vector<std::string_view> words{served};
    for (const std::string_view word :
         {"bf16", "fp16", "fp32", "e4m3fn", "e4m3fnuz", "e5m2", "e2m1", "e8m0"}) {
        if (word != served) {
            words.push_back(word);
        }
    }
    return words;
}

}  // namespace kiln::operators
