// The template fused_moe/small_m: which constants it takes, and how what it compiles to is launched. The
// contract is kernel_src/fused_moe/README.md.
#pragma once

#include <cstdint>

#include "runtime/operators/operator.hpp"

namespace kiln::operators {

// The most that a bucket may serve: tokens, and pairs of a token and a slot.
inline constexpr std::int64_t kFusedMoeMostTokens = 64;
inline constexpr std::int64_t kFusedMoeMostPairs = 704;

[[nodiscard]] const KernelTemplate& fused_moe_small_m_gfx950();

// LDS of a work-group of the kernel that has most. Requires a bucket with the template's constants.
[[nodiscard]] std::int64_t fused_moe_small_m_lds(const Problem& problem, const Bucket& bucket);

}  // namespace kiln::operators
