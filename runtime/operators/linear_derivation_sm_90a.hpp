// Constants of linear/small_m on sm_90a for a problem that no one has tuned: a rule, not a measurement.
//
//  1. Buckets end at M = 8, 16, 24 and 32: there the matrix instruction takes another eight tokens.
//  2. split_k and tiles_n: the least work for the busiest of the 132 multiprocessors, each of which works off
//     one work-group after the other: a work-group costs its 2 KiB pieces of weights, and 24 more for what it
//     begins and ends with. Of equals, the largest cluster up to four, since its work-groups share the
//     quantising of the activations, and beyond four, clusters find fewer places.
//  3. warp_tiles, warps_k and stages: at least 64 KiB of weights in flight, or all that a work-group has; of
//     those, four steps or more, so that one is worked off while others arrive; then as close to eight warps
//     as can be, since fewer do not keep up with the memory and each adds a barrier; then the most tiles a
//     warp, since tokens are unpacked once for them.
//  4. Sums and unpacked tokens leave a lane registers: 4 * warp_tiles * groups + 16 * groups at most 96, with
//     groups of eight tokens.
#pragma once

#include <vector>

#include "runtime/operators/linear.hpp"
#include "runtime/operators/operator.hpp"

namespace kiln::operators {

// Ascending by max_m, each accepted by the template's check(); they end where a bucket has no constants.
// bad_input where the first has none: weights of 4 GiB and more, or a K so long that its quantised
// activations leave no room in shared memory. Requires a problem that linear().judge() accepts.
[[nodiscard]] Result<std::vector<Bucket>> derive_linear_small_m_sm_90a(const Problem& problem);

}  // namespace kiln::operators
