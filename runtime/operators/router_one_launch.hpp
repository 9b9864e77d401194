// The template router/one_launch: which constants it takes, and how what it compiles to is launched. The
// contract is kernel_src/router/README.md.
#pragma once

#include <vector>

#include "runtime/operators/operator.hpp"
#include "runtime/operators/router.hpp"

namespace kiln::operators {

[[nodiscard]] const KernelTemplate& router_one_launch_gfx950();

// Constants for a problem that no table has, for buckets up to 1, 2, 4 and 8 tokens: above that one
// work-group that chooses for all of them takes longer than further launches would.
//
//  1. As many rows of the gate for a work-group, at most four, as leave a work-group for each of 256 compute
//     units: rows share the tokens that a work-group reads. One, where there are too few rows for that.
//  2. Waves so that a lane has at most two pieces of a row, but four at least, and one for each token, since
//     a wave chooses for one; and none that would have nothing to read.
//
// Each with a budget: eight waves on a SIMD with up to two rows, and pieces of a row a lane, else four; and
// the LDS of its sums.
//
// bad_input where a row of the gate is longer than the registers of a work-group hold. Requires a problem
// that router().judge() accepts.
[[nodiscard]] Result<std::vector<Bucket>> derive_router_one_launch_gfx950(const Problem& problem);

}  // namespace kiln::operators
