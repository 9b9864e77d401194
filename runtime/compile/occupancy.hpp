// How much of a GPU a kernel leaves room for, on a gfx9 processor with a unified register file (gfx90a and
// on).
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/compile/code_object.hpp"

namespace kiln::compile {

inline constexpr std::int64_t kSimds = 4;  // of a compute unit
inline constexpr std::int64_t kLdsBytes = 160 * 1024;

// The waves that a SIMD holds at once as far as registers of a lane allow, the accumulation half included:
// 512 in steps of 8, at most 8 waves.
[[nodiscard]] constexpr std::int64_t waves_by_registers(std::int64_t registers) {
    constexpr std::int64_t kRegisters = 512, kStep = 8, kMostWaves = 8;
    const std::int64_t taken = std::max<std::int64_t>(1, (registers + kStep - 1) / kStep) * kStep;
    return std::min(kRegisters / taken, kMostWaves);
}

// The work-groups that a compute unit holds at once.
[[nodiscard]] constexpr std::int64_t groups_per_unit(std::int64_t registers, std::int64_t waves,
                                                     std::int64_t lds_bytes) {
    const std::int64_t most = kSimds * waves_by_registers(registers);
    return std::min(most / waves, lds_bytes == 0 ? most : kLdsBytes / lds_bytes);
}

// The waves of a SIMD, as far as registers and LDS allow; rounded down where LDS leaves less than one for
// each. A work-group has `waves` waves and `lds_bytes` in all.
[[nodiscard]] inline std::int64_t waves_per_simd(const KernelInfo& kernel, std::int64_t waves,
                                                 std::int64_t lds_bytes) {
    const std::int64_t by_registers = waves_by_registers(kernel.vgprs);
    return lds_bytes == 0 ? by_registers : std::min(by_registers, kLdsBytes / lds_bytes * waves / kSimds);
}

}  // namespace kiln::compile
