// What waves executed, as a device reports it.
#pragma once

#include "runtime/device/device.hpp"
#include "runtime/sim/wave.hpp"

namespace kiln::sim {

void add(device::ExecutionCounts& total, const device::ExecutionCounts& part);
// All that one wave did; counts it as one.
void add(device::ExecutionCounts& total, const Wave& wave);

}  // namespace kiln::sim
