// Manual pages in the man(7) macros, made of what the command line itself is made of.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "tools/kiln/manual.hpp"

namespace kiln::cli {

// The page of the program or of one of its commands. The same for the same kiln: no date, no host, nothing
// of the environment.
[[nodiscard]] std::string man_page(const CLI::App& command, const Manuals& manuals);

// One page for the program and for each command: FOLDER/kiln.1, FOLDER/kiln-bundle-create.1, ... The folder
// is made where it is not there.
[[nodiscard]] Result<void> write_man_pages(const CLI::App& program, const Manuals& manuals,
                                           const std::string& folder);

}  // namespace kiln::cli
