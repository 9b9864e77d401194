// The parts of a page that are files: its style and script, the plotting library as the build found it, and
// that library's license. Inside this room only.
#pragma once

#include <string_view>

namespace kiln::report {

// "page.css", "page.js", "chart.js" or "chart.js.license". The build holds that they are there.
[[nodiscard]] std::string_view page_file(std::string_view name);

}  // namespace kiln::report
