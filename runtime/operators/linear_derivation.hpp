// Constants of linear/small_m for a problem that no one has tuned: a rule, not a measurement.
//
// What it goes by are exact counts of executed wave-instructions on the simulator, in which a work-group of
// gfx950 costs q + tiles_n * w: q for quantising the activations, which every work-group does for itself, and
// w for one 16-column tile of weights. At K = 2048 with 8 waves, q is 874 at M = 1 and 2888 at M = 32, w is
// 198 and 278; the ratio q / w, 4 to 10, decides. The rule says nothing of time.
//
//  1. Buckets end at M = 4, 8, 16 and 32: there the fragment's rows, hence q, change. lane_rows is 4, 8,
//  16, 16.
//  2. tiles_n: with ceil(work-groups / 256) work-groups on the busiest of the 256 compute units, the fewest
//  of
//     those; of equals, the fewest tiles. But never fewer than 128 work-groups where there are as many tiles:
//     half of the compute units must ask for weights, however cheap fewer work-groups would be.
//  3. waves and blocks_ahead: the most blocks of K in flight in a work-group (waves * blocks_ahead); of
//  equals,
//     as close to 8 waves, two a SIMD, as can be; then the fewer waves, since each costs its own part of the
//     sum over waves (4096 x 2048, M = 1: 4, 8, 16 waves execute 213, 274, 416 thousand instructions).
//  4. Registers: the template's bound of 112 holds where a wave has all its blocks in flight. Where it asks
//  for
//     more while it multiplies, the compiler spills from 100 on with two such rounds, from 96 on with four
//     (156 combinations compiled); the rule stays below.
#pragma once

#include <vector>

#include "runtime/operators/linear.hpp"
#include "runtime/operators/operator.hpp"

namespace kiln::operators {

// Ascending by max_m, each accepted by the template's check(). bad_input where a bucket has no legal
// constants: weights of 4 GiB and more. Requires a problem that linear().judge() accepts.
[[nodiscard]] Result<std::vector<Bucket>> derive_linear_small_m(const Problem& problem);

}  // namespace kiln::operators
