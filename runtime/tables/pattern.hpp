// What a general row admits of a problem's fields.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "runtime/tables/problem.hpp"

namespace kiln::tables {

// Numbers between two ends, both inclusive, either of which may be missing; without ends any value, a word
// too.
struct FieldRange {
    std::optional<std::int64_t> min, max;

    [[nodiscard]] bool is_any() const { return !min && !max; }
    [[nodiscard]] bool admits(const FieldValue& value) const;

    friend auto operator<=>(const FieldRange&, const FieldRange&) = default;
};
// "1..1024", "16..", "any"
[[nodiscard]] std::string to_text(const FieldRange& range);

// By field; of the fields that are not here a row has one value each.
using Pattern = std::map<std::string, FieldRange, std::less<>>;
// "experts=1..1024 slots=any"
[[nodiscard]] std::string to_text(const Pattern& pattern);

}  // namespace kiln::tables
