// How many work-groups one compute unit of gfx950 holds at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "runtime/compile/code_object.hpp"
#include "runtime/sim/machine.hpp"

namespace kiln::sim::hip {

[[nodiscard]] constexpr std::uint32_t blocks_per_unit(const compile::KernelInfo& info,
                                                      std::uint32_t block_threads,
                                                      std::size_t dynamic_lds_bytes) {
    constexpr std::uint32_t kSimds = 4;
    constexpr std::uint32_t kWavesPerSimd = 8;
    constexpr std::uint32_t kRegisters = 512;  // per lane of a SIMD, the accumulation half included
    constexpr std::uint32_t kRegisterBlock = 8;
    const std::uint32_t registers =
        (std::max(info.vgprs, 1U) + kRegisterBlock - 1) / kRegisterBlock * kRegisterBlock;
    const std::uint32_t waves = kSimds * std::min(kWavesPerSimd, kRegisters / registers);
    const std::uint32_t block_waves = (block_threads + 63) / 64;
    if (block_threads > info.max_threads) {
        return 0;
    }
    const std::size_t lds = info.lds_bytes + dynamic_lds_bytes;
    const std::size_t by_lds = lds == 0 ? waves : kMaxLdsBytes / lds;
    return static_cast<std::uint32_t>(std::min<std::size_t>(waves / block_waves, by_lds));
}

}  // namespace kiln::sim::hip
