// What a launch would cost on an MI355X, from exact counts of the simulator: a model, not a measurement.
//
// Kernels of a launch run one after the other. Each takes the longest of what it asks of each part of the
// chip, on the compute unit that gets the most of it: with W work-groups, ceil(W / 256) of them; then what
// starting it takes. Only the first two add up.
//   memory  the distinct 128-byte lines that are read and written, at 5.6 TB/s; those that the dies fetch,
//           each for itself, at 12.0 TB/s; never faster than what the resident waves can have in flight, half
//           of their registers, comes back
//   issue   a SIMD takes four cycles for a vector instruction, sixteen for a transcendental one; a unit has
//           one scalar unit, and its cache serves a line request each two cycles
//   mfma    the cycles of the matrix units
//   lds     the cycles of the unit's LDS, conflicts included
//   chain   a wave issues an instruction each four cycles at best, and its work-group waits at least twice
//           for memory; as many times over as the unit's work-groups take turns, by registers and LDS
//
// Constants: public figures of the MI355X (256 compute units of 4 SIMDs, 2.4 GHz, 8 TB/s of memory) and the
// 17.2 TB/s of its predecessor's last cache. The rest is by the nine public times of `linear` (three sizes,
// M = 1, 8, 32), which it comes within 3% of on average, 11% at worst: that 0.7 of both bandwidths are
// reached, that a launch takes 2.1 us, and that memory and issue add up (the longest of all parts alone is
// off by 20% on average, too low). A latency of 0.8 us is a guess.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/device.hpp"

namespace kiln::tune {

// Goes up with every change of what is above, or of what is counted for it: costs of different revisions can
// not be compared. Never down.
inline constexpr std::int64_t kCostModelRevision = 2;

// One kernel of a launch.
struct KernelWork {
    std::string symbol;
    device::ExecutionCounts counts;
    std::int64_t registers = 0;  // of a lane, accumulation half included
    std::int64_t waves_per_group = 1;
    std::int64_t lds_bytes = 0;  // of a work-group
};

struct KernelCost {
    std::string symbol;
    double us = 0;
    double memory_us = 0, issue_us = 0, mfma_us = 0, lds_us = 0, chain_us = 0, launch_us = 0;
    std::int64_t work_groups = 0;
    std::int64_t groups_per_unit = 0;  // of the busiest
    std::int64_t waves_per_simd = 0;   // that registers and LDS leave room for
    // "memory", "issue" (the larger of the two), "mfma", "lds", "chain"; "launch" of a kernel without work.
    std::string bound_by;
};

struct Cost {
    double us = 0;  // the sum
    std::vector<KernelCost> kernels;
};

[[nodiscard]] Cost model_cost(std::span<const KernelWork> kernels);

}  // namespace kiln::tune
