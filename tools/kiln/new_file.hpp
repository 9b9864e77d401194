// What --out and its like name.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace kiln::cli {

// The folder that the file is in, made with those above it where it is not there. io where it can not be
// made.
[[nodiscard]] Result<std::filesystem::path> make_folder_of(const std::string& path);

// Whether a file can be written into the folder that it is in, which must be there: to be asked before work
// is done for it. io, behind the words of `option`.
[[nodiscard]] Result<void> check_folder_of(const std::string& path, std::string_view option);

// Never writes over what is there: that is bad_input. Makes the folders that it needs: those of a user's
// tables are seldom there. io where it can not be written; nothing is left then.
[[nodiscard]] Result<void> write_new_file(const std::string& path, std::string_view text);

}  // namespace kiln::cli
