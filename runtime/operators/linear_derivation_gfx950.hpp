// Constants of linear/small_m on gfx950 for a problem that no one has tuned: a rule, not a measurement.
//
// What it goes by are exact counts of executed wave-instructions on the simulator, in which a work-group
// costs q + tiles_n * w: q for quantising the activations, which every work-group does for itself, and w for
// one 16-column tile of weights. At K = 2048 with 8 waves, q is 874 at M = 1 and 2888 at M = 32, w is
// 198 and 278; the ratio q / w, 4 to 10, decides. The rule says nothing of time.
//
//  1. Buckets end at M = 4, 8, 16 and 32: there the fragment's rows, hence q, change. lane_rows is 4,
//     8, 16, 16.
//  2. tiles_n: with ceil(work-groups / 256) work-groups on the busiest of the 256 compute units, the
//     fewest of those; of equals, the fewest tiles. But never fewer than 128 work-groups where there
//     are as many tiles: half of the compute units must ask for weights, however cheap fewer
//     work-groups would be.
//  3. waves and blocks_ahead: the most blocks of K in flight in a work-group (waves * blocks_ahead); of
//     equals, as close to 8 waves, two a SIMD, as can be; then the fewer waves, since each costs its
//     own part of the sum over waves (4096 x 2048, M = 1: 4, 8, 16 waves execute 213, 274, 416 thousand
//     instructions).
//  4. What the compiler is known to build without spilling, of 1,000 combinations that were compiled.
//     Vector registers: the template's bound of 112 where a wave has all its blocks in flight; where it
//     asks for more once, 96 with 8 or 16 waves, else 92; oftener, 84. Scalar registers and unrolling:
//     a wave holds the scales of all its blocks (one for each block, or one for each tile of a
//     work-group whose columns may lie across two scales), at most 32, and works off at most 46 blocks
//     times 16 tokens. LDS lets 16 waves into a compute unit.
#pragma once

#include <vector>

#include "runtime/operators/linear.hpp"
#include "runtime/operators/operator.hpp"

namespace kiln::operators {

// Ascending by max_m, each accepted by the template's check(); they end where a bucket has no constants.
// bad_input where the first has none: weights of 4 GiB and more, or a K that no number of waves splits into
// parts that can be unrolled (37 * 128). Requires a problem that linear().judge() accepts.
[[nodiscard]] Result<std::vector<Bucket>> derive_linear_small_m_gfx950(const Problem& problem);

// What a tuner tries for a bucket that ends at max_m: every tiles_n that leaves work for a quarter of the
// compute units (of the tiles, where they are fewer), with the powers of two of waves and every blocks_ahead
// that 4. lets through. Requires the same.
[[nodiscard]] Space linear_small_m_space_gfx950(const Problem& problem, std::int64_t max_m);

}  // namespace kiln::operators
