// How much of a GPU a kernel leaves room for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "runtime/compile/code_object.hpp"

namespace kiln::compile {

// The waves that a SIMD of a gfx9 processor with a unified register file (gfx90a and on) holds at once, as
// far as registers and LDS allow: 512 registers in steps of 8, at most 8 waves; 160 KiB for the four SIMDs of
// a compute unit. A work-group has `waves` waves and `lds_bytes` in all.
[[nodiscard]] inline std::int64_t waves_per_simd(const KernelInfo& kernel, std::int64_t waves,
                                                 std::int64_t lds_bytes) {
    constexpr std::int64_t kRegisters = 512, kStep = 8, kMostWaves = 8, kSimds = 4;
    constexpr std::int64_t kLdsBytes = 160 * 1024;
    const std::int64_t registers = std::max<std::int64_t>(1, (kernel.vgprs + kStep - 1) / kStep) * kStep;
    const std::int64_t by_lds = lds_bytes == 0 ? kMostWaves : kLdsBytes / lds_bytes * waves / kSimds;
    return std::min({kRegisters / registers, by_lds, kMostWaves});
}

}  // namespace kiln::compile
