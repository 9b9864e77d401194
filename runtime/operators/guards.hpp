// Guards that compare one field of a problem with the only value that is served, and the words for types of
// elements: what the operators' problems have in common.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "runtime/operators/operator.hpp"

namespace kiln::operators {

struct Guard {
    std::string_view field;
    tables::FieldValue served;
    kiln_decline decline;
};

// Declines for the first guard that the problem does not pass. Requires a complete problem.
[[nodiscard]] Answer<void> check_guards(const Operator& op, const Problem& problem,
                                        std::span<const Guard> guards);

// The words of a field for a type, `served` first: the default.
[[nodiscard]] std::vector<std::string_view> type_words(std::string_view served);

// A number of a complete problem.
[[nodiscard]] inline std::int64_t number(const Problem& problem, std::string_view field) {
    return std::get<std::int64_t>(problem.find(field)->second);
}

}  // namespace kiln::operators
