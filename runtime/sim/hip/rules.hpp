// How launches run: as the environment says, and what the program changes of it (kiln_sim_set_rules).
#pragma once

#include "base/error.hpp"
#include "runtime/device/hip/sim_abi.h"
#include "runtime/sim/checks.hpp"
#include "runtime/sim/order.hpp"

namespace kiln::sim::hip {

struct Rules {
    RunOrder order;                 // KILN_SIM_ORDER
    Scopes scopes = Scopes::early;  // KILN_SIM_SCOPES
    Checks checks;                  // KILN_SIM_CHECK
};

// Of the environment; null when it is not set, or empty, which is the same everywhere in kiln.
[[nodiscard]] const char* variable(const char* name);

// A malformed variable is warned of and left out.
[[nodiscard]] Rules environment_rules();

// `rules` with what is said in place of theirs. bad_input names the member and what was expected.
[[nodiscard]] Result<Rules> changed(Rules rules, const kiln_sim_rules& said);

}  // namespace kiln::sim::hip
