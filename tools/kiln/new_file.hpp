// What --out names.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace kiln::cli {

// Never writes over what is there: that is bad_input. Makes the folders that it needs: those of a user's
// tables are seldom there. io where it can not be written; nothing is left then.
[[nodiscard]] Result<void> write_new_file(const std::string& path, std::string_view text);

}  // namespace kiln::cli
