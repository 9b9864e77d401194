// How many work-groups gfx950 holds at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/sim/machine.hpp"

namespace kiln::sim {

inline constexpr std::uint32_t kComputeUnits = 256;

// On one compute unit, by the registers of a lane (the accumulation half included) and by LDS.
[[nodiscard]] constexpr std::uint32_t groups_per_unit(std::uint32_t registers, std::uint32_t group_threads,
                                                      std::size_t lds_bytes) {
    constexpr std::uint32_t kSimds = 4;
    constexpr std::uint32_t kWavesPerSimd = 8;
    constexpr std::uint32_t kRegisters = 512;
    constexpr std::uint32_t kRegisterBlock = 8;
    const std::uint32_t taken =
        (std::max(registers, 1U) + kRegisterBlock - 1) / kRegisterBlock * kRegisterBlock;
    const std::uint32_t waves = kSimds * std::min(kWavesPerSimd, kRegisters / taken);
    const std::uint32_t group_waves = (group_threads + 63) / 64;
    const std::size_t by_lds = lds_bytes == 0 ? waves : kMaxLdsBytes / lds_bytes;
    return static_cast<std::uint32_t>(std::min<std::size_t>(waves / group_waves, by_lds));
}

}  // namespace kiln::sim
