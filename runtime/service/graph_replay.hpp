// Work that runs from a graph instead of at once.
#pragma once

#include <functional>

#include "base/error.hpp"
#include "runtime/device/device.hpp"

namespace kiln::service {

// Records what `enqueue` puts on the stream that it is given, replays the graph and waits for its end. False,
// and nothing ran, where the driver can not capture. The device must be the calling thread's current one.
[[nodiscard]] Result<bool> replay_recorded(device::Device& device,
                                           const std::function<Result<void>(device::Stream)>& enqueue);

}  // namespace kiln::service
