// The rule that makes buckets of fused_moe/mxmoe for a problem that no one has tuned, on gfx950: those behind
// small_m's, up to 1024 tokens.
//
// What is best goes by the pairs that an expert gets, M * S / E, where published selections for 384 to 513
// experts and 8 to 11 slots agree:
//
//     pairs of an expert   block_m   weights         x
//     up to 5.5            16        non-temporal    quantised where it is multiplied
//     up to 12             32        non-temporal    a quantised copy
//     up to 48             32                        a quantised copy
//     beyond               128                       a quantised copy
//
// Up to 48, atomics add up a token's slots; beyond, a kernel combines them in order. A bucket ends at a power
// of two; neighbours with the same constants are one. Behind each that adds by atomics stands its like that
// combines, with the same end: for problems that demand the same bits.
//
// Each bucket's budget: three waves a SIMD with block_m 16 and 32, two with 128; and the LDS that the
// template counts.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/operators/operator.hpp"

namespace kiln::operators {

inline constexpr std::int64_t kMxmoeDerivedEnd = 1024;

// For M above `above`. Empty where the template does not serve the problem. Requires one that judge()
// accepts.
[[nodiscard]] std::vector<Bucket> derive_fused_moe_mxmoe_gfx950(const Problem& problem, std::int64_t above);

}  // namespace kiln::operators
