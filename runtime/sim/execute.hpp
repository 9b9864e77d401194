// Runs the waves of one work-group.
#pragma once

#include <span>
#include <string>

#include "base/error.hpp"
#include "runtime/sim/wave.hpp"

namespace kiln::sim {

// Until every wave has ended. The waves take turns in order, each until it ends, reaches a barrier or has had
// its share, so that the order of execution depends on nothing but the program. Waves that ended count as
// arrived at barriers. device_failed when a rule is broken; `kernel` is for its message.
[[nodiscard]] Result<void> run_group(std::span<Wave> waves, std::string_view kernel);

}  // namespace kiln::sim
