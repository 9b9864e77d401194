// The word that a misspelt one most likely stands for, for messages.
#pragma once

#include <span>
#include <string_view>

namespace kiln {

// Of `known`, which must not be empty, the word that takes the fewest single-letter edits to `word`; the
// first of several.
[[nodiscard]] std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

}  // namespace kiln
