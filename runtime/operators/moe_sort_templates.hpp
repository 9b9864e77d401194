// The templates of moe_sort on gfx950: what they serve, and how what they compile to is launched. Their
// contracts are kernel_src/moe_sort/README.md.
#pragma once

#include <vector>

#include "runtime/operators/operator.hpp"

namespace kiln::operators {

[[nodiscard]] const KernelTemplate& moe_sort_compact_gfx950();
[[nodiscard]] const KernelTemplate& moe_sort_distributed_gfx950();
[[nodiscard]] const KernelTemplate& moe_sort_general_gfx950();

// The rule of the shipped rows: compact up to min(64, 2 * block_m) pairs, distributed up to 256 where there
// are at most 256 experts, general beyond.
[[nodiscard]] std::vector<Bucket> derive_moe_sort_gfx950(const MoeSortProblem& problem);

}  // namespace kiln::operators
