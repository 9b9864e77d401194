// The template fused_moe/mxmoe, a pipeline: which constants it takes, which stages a launch runs, and the
// stages' templates. The contract of the kernels is kernel_src/fused_moe/README.md.
//
// A bucket's constants, all of them integers:
//
//     block_m  rows of sorted pairs that a work-group multiplies: 16, 32, 64 or 128
//     f16in    1: the first product quantises bf16 rows itself (block_m 16 only); 0: a quantised copy is made
//     g1_nt    1: the first product reads its weights with the non-temporal hint
//     g2       how the second product is summed: 0 atomic, 1 combined, 2 fused (MxmoeSum)
//     g2_nt    as g1_nt, of the second product
#pragma once

#include <cstdint>

#include "runtime/operators/operator.hpp"

namespace kiln::operators {

[[nodiscard]] const Template& fused_moe_mxmoe_gfx950();

// Its stages, but for the sort, which is moe_sort's. None stands in a row.
[[nodiscard]] const KernelTemplate& mxmoe_quantise_gfx950();
[[nodiscard]] const KernelTemplate& mxmoe_g1_gfx950();
[[nodiscard]] const KernelTemplate& mxmoe_g2_gfx950();
[[nodiscard]] const KernelTemplate& mxmoe_combine_gfx950();

// Whether the layouts of its kernels allow the problem's dimensions.
[[nodiscard]] bool has_mxmoe_dimensions(const FusedMoeProblem& problem);
// LDS of a work-group of the product that has most. Requires a bucket with the template's constants.
[[nodiscard]] std::int64_t fused_moe_mxmoe_lds(const Bucket& bucket);

}  // namespace kiln::operators
