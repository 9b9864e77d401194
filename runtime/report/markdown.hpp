// A report as Markdown, with the tables of GitHub.
#pragma once

#include <string>

#include "runtime/report/report.hpp"

namespace kiln::report {

// Names and messages that hold markup come out as the text that they are.
[[nodiscard]] std::string to_markdown(const Report& report);

}  // namespace kiln::report
