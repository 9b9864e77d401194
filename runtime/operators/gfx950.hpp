// What the templates for gfx950 have in common.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::operators {

inline constexpr std::int64_t kGfx950LdsBytes = 160 * 1024;  // of a work-group

// What the compiler is told, target aside. The argument names are what the loader compares with the plan's;
// without the option they are not recorded.
[[nodiscard]] inline std::vector<std::string> gfx950_options() {
    return {"-O3", "-std=c++20", "-mcumode", "-fhip-kernel-arg-name", "-Wall", "-Wextra"};
}

}  // namespace kiln::operators
