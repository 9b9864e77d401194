// The fields of a problem by name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>

namespace kiln::tables {

// With every default filled in, so that equal problems compare equal.
using FieldValue = std::variant<std::int64_t, std::string>;
using Problem = std::map<std::string, FieldValue, std::less<>>;

// "k=4096 n=5120", for messages.
[[nodiscard]] std::string to_text(const Problem& problem);

}  // namespace kiln::tables
