// The scratch of moe_sort/general. Waves take runs of consecutive pairs; every array is of 32-bit words.
#pragma once

#include "device/macros.h"
#include "device/types.h"

namespace kiln::moe_sort {

using device::u32;
using device::u64;

inline constexpr u32 kMostRuns = 256;
inline constexpr u32 kRunStep = 64;  // pairs that a wave takes at once

// Pairs of a run, a multiple of kRunStep. Requires at least one pair.
KILN_HOST_DEVICE constexpr u32 run_pairs(u32 pairs) {
    const u32 steps = (pairs + kRunStep - 1) / kRunStep;
    return (steps + kMostRuns - 1) / kMostRuns * kRunStep;
}
KILN_HOST_DEVICE constexpr u32 num_runs(u32 pairs) {
    return (pairs + run_pairs(pairs) - 1) / run_pairs(pairs);
}

// Where the arrays begin, in words.
struct GeneralWorkspace {
    u32 experts;
    u32 pairs;

    // Of each expert: its pairs, and its first block.
    [[nodiscard]] KILN_HOST_DEVICE constexpr u64 expert_pairs() const { return 0; }
    [[nodiscard]] KILN_HOST_DEVICE constexpr u64 first_block() const { return experts; }
    // Of each run and expert: first the pairs in the run, then those in all runs before.
    [[nodiscard]] KILN_HOST_DEVICE constexpr u64 of_run() const { return u64{2} * experts; }
    // Of each pair: its row. There only with the quantiser.
    [[nodiscard]] KILN_HOST_DEVICE constexpr u64 row_of_pair() const {
        const u32 steps = (pairs + kRunStep - 1) / kRunStep;
        const u32 most_runs =
            steps < kMostRuns ? steps : kMostRuns;  // grows with pairs, as num_runs() does not
        return of_run() + static_cast<u64>(most_runs) * experts;
    }
    [[nodiscard]] KILN_HOST_DEVICE constexpr u64 bytes(bool with_rows) const {
        return sizeof(u32) * (row_of_pair() + (with_rows ? pairs : 0));
    }
};

}  // namespace kiln::moe_sort
