#include "runtime/tables/pattern.hpp"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::tables {

bool FieldRange::admits(const FieldValue& value) const {
    if (is_any()) {
        return true;
    }
    const auto* number = std::get_if<std::int64_t>(&value);
    return number != nullptr && (!min || *min <= *number) && (!max || *number <= *max);
}

std::string to_text(const FieldRange& range) {
    if (range.is_any()) {
        return "any";
    }
    return fmt::format("{}..{}", range.min ? fmt::format("{}", *range.min) : "",
                       range.max ? fmt::format("{}", *range.max) : "");
}

std::string to_text(const Pattern& pattern) {
    std::vector<std::string> fields;
    for (const auto& [name, range] : pattern) {
        fields.push_back(fmt::format("{}={}", name, to_text(range)));
    }
    return fmt::format("{}", fmt::join(fields, " "));
}

}  // namespace kiln::tables
