// What kiln itself costs on a real GPU: a launch beside the driver's own call, a first use, preparing a
// table.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "kiln/kiln.hpp"
#include "tools/bench/gpu.d/rotation.hpp"

namespace kiln::bench {

// The kiln of the environment, on a CUDA device. Throws where it does not open.
Service open_service();
// Every bucket loaded. Throws where it is declined or fails.
Plan<Linear> prepare(const Service& service, const Problem& problem);

// Nanoseconds a launch, of bursts of a plan's launch and of cuLaunchKernel with the same kernel and
// arguments, in turns.
nlohmann::json launch_cost(const Plan<Linear>& plan, const Rotation& rotation, std::int64_t m, int rounds);

// Milliseconds from nothing of kiln to the result of a first launch, the GPU's context and arrays being there
// already. In a process of its own, since the first look at files and libraries is part of it.
nlohmann::json first_use(const Problem& problem, std::int64_t m);

// Milliseconds to open kiln and prepare all problems. In a process of its own.
nlohmann::json prepare_all(const std::vector<Problem>& problems);

}  // namespace kiln::bench
