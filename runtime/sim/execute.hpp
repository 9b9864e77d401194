// Runs the waves of one work-group.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.hpp"
#include "runtime/sim/wave.hpp"

namespace kiln::sim {

struct RunError : Error {
    bool bad_address = false;  // an access outside every allocation
};

// Until the wave ends, reaches a barrier or has executed `limit` instructions; how many it did. device_failed
// when a rule is broken; `kernel` is for its message.
[[nodiscard]] tl::expected<std::uint32_t, RunError> run_wave_turn(Wave& wave, std::uint32_t limit,
                                                                  std::string_view kernel);

enum class GroupState : std::uint8_t { running, released, ended };
// After turns of its waves. `released`: all that have not ended waited at the barrier and may go on now.
GroupState settle_group(std::span<Wave> waves);

}  // namespace kiln::sim
