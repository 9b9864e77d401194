// A report as one HTML page that needs nothing beside itself: style, data, script and the plotting library
// (Chart.js, with its license) are inside. It opens from a file, without a network, in light and dark, and
// prints. Every figure of a plot stands in a table too, which is there without scripts.
#pragma once

#include <string>

#include "runtime/report/report.hpp"

namespace kiln::report {

// Names and messages that hold markup come out as the text that they are.
[[nodiscard]] std::string to_page(const Report& report);

}  // namespace kiln::report
