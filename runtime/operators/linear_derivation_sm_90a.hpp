// Constants of linear/small_m on sm_90a for a problem that no one has tuned: a rule, not a measurement.
//
//  1. Buckets end at M = 8, 16, 24 and 32: there the matrix instruction takes another eight tokens.
//  2. split_k and tiles_n: the least work for the busiest multiprocessor. Of clusters of 1, 2 and 4
//     work-groups 132, 66 and 30 fit an H200 at once (seen there); what is more waits for another round.
//     Eight are for a K that no other leaves room for. In pieces of 2 KiB, a work-group costs its weights, 24
//     for what it begins and ends with, and 0.4 for every k block and eight tokens that it quantises: between
//     these, the fastest of some candidates timed on an H200 changed from two work-groups a cluster to four.
//  3. The rest: at least 64 KiB of weights in flight, or all that a work-group has; of those, four to eight
//     steps, so that one is worked off while others arrive, and none is short; then as close to eight warps
//     as can be, since fewer do not keep up with the memory and each adds its part of the sums; then no warp
//     with fewer tiles than its neighbours; then the most tiles a warp, since tokens are unpacked once for
//     them. All stages are asked for before the activations.
//  4. Registers, at most 224, that leave the compiler without spills: for groups of eight tokens, 70 + 16 a
//     group + 4 a group and tile + 2 a tile + 4 a group (20 a tile where there is but one group) while it
//     multiplies, 60 + 16 for each of at most eight k blocks that a warp quantises together.
#pragma once

#include <vector>

#include "runtime/operators/linear.hpp"
#include "runtime/operators/operator.hpp"

namespace kiln::operators {

// Ascending by max_m, each accepted by the template's check(); they end where a bucket has no constants.
// bad_input where the first has none: weights of 4 GiB and more, or a K so long that its quantised
// activations leave no room in shared memory. Requires a problem that linear().judge() accepts.
[[nodiscard]] Result<std::vector<Bucket>> derive_linear_small_m_sm_90a(const Problem& problem);

// What a tuner tries for a bucket that ends at max_m: each split_k with the tiles_n that take one and two
// rounds (2.), four to sixteen warps in the arrangements that 4. lets through, and 4, 8 or 16 steps
// with the most stages that fit. Requires the same.
[[nodiscard]] Space linear_small_m_space_sm_90a(const Problem& problem, std::int64_t max_m);

}  // namespace kiln::operators
