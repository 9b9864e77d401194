// Gives the compiler's diagnostics the names that the request used.
#pragma once

#include <string>
#include <string_view>

namespace kiln::compile::backend {

// comgr writes what it was handed below SCRATCH/comgr-.../input/ and .../include/ and names those paths; what
// remains behind them is the name in the request: "linear/small_m.gfx950.hip:12:3: error: ...".
[[nodiscard]] std::string with_template_names(std::string_view log, std::string_view scratch);

}  // namespace kiln::compile::backend
