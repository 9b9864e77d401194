// A quick look at JSON that is canonical already, as almost every part of a key is: it was written by us.
#pragma once

#include <cstddef>
#include <string_view>

namespace kiln::cache {

// Length of the canonical object that `text` begins with, or 0. Canonical is what key.hpp says; of that, this
// knows only names and strings of printable ASCII without escapes, and integers of up to 18 digits. So 0 says
// nothing but that a JSON library must be asked.
[[nodiscard]] std::size_t canonical_object_length(std::string_view text);

}  // namespace kiln::cache
