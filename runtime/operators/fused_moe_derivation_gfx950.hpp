// The rule that makes constants of fused_moe/small_m for a problem that no one has tuned, on gfx950.
//
// Where it ends: the public crossovers, above which sorting the pairs by expert wins, are 40 tokens for mxfp4
// with I = 256 and 20 with 512; 20 for fp8 with 256 and 48 with 128. So the last bucket ends at 10240 / I
// tokens for mxfp4, and at 5120 / I for fp8 but 48 at I = 128, never above 64 tokens or 704 pairs.
//
// Buckets: one token, 4, 16, and the last. What is chosen for fewer tokens than a bucket's most is chosen
// when the kernels run.
//
//  1. gate_up, one token: as many columns a work-group as leave a work-group for each of 256 compute units,
//  at
//     most 16. fp8 takes 8, and so does mxfp4 where all experts' weights are too many for a 32-bit offset, or
//     16 where the compute units have work-groups enough. More tokens: 16.
//  2. gate_up_waves: the most up to 4 that divide hidden / 128.
//  3. down, one token: 4 tiles of rows and a wave for each slot, with fp8 2 tiles and 4 waves: the fewer
//  rows, the
//     more often h is read. More tokens: one tile; 8 waves up to 4 tokens, 16 above.
//
// Each bucket's budget: two waves a SIMD, and the LDS that the template counts.
#pragma once

#include <vector>

#include "runtime/operators/operator.hpp"

namespace kiln::operators {

// bad_input where the template takes no constants for any bucket. Requires a problem that judge() accepts.
[[nodiscard]] Result<std::vector<Bucket>> derive_fused_moe_small_m_gfx950(const Problem& problem);

}  // namespace kiln::operators
