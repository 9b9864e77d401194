// What `kiln warm` and `kiln bundle create` say of the specialisations that they worked on.
#pragma once

#include <string>

#include "runtime/service/service.hpp"
#include "tools/kiln/command.hpp"

namespace kiln::cli {

// "linear n=4608 k=4096 max_m=16 gfx950"
[[nodiscard]] std::string to_text(const operators::Specialisation& specialisation);

// On stderr, each reason once: without a compiler, say, it is the same for every item. Returns the gravest
// code.
[[nodiscard]] ExitCode print_failures(const service::WarmSummary& summary);

}  // namespace kiln::cli
