// The kernels that the public form names, and the constants of fused_moe/mxmoe that stand for them here.
//
//   flydsl_mxmoe_g1_a4w4_{block_m}x256x256[_f16in][_nt]
//   flydsl_mxmoe_g2_a4w4_{block_m}x256x256[_atomic|_nonatomic][_nt]      without either word: nonatomic
//
//   constant   value    in the names
//   block_m    of both  the first number of the tile
//   f16in      1        _f16in: G1 takes bf16 rows and quantises them itself
//   g1_nt      1        _nt of G1: weights loaded past the caches' retention
//   g2         0        _atomic
//              1        no word, or _nonatomic
//              2        none: nonatomic with its combine fused has no published name
//   g2_nt      1        _nt of G2
#pragma once

#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "runtime/tables/table.hpp"

namespace kiln::tuned_config {

inline constexpr std::string_view kTemplate = "fused_moe/mxmoe";

struct KernelNames {
    std::string first, second;  // kernelName1, kernelName2

    friend bool operator==(const KernelNames&, const KernelNames&) = default;
};

// The constants, or why these kernels have none: an unknown name, a suffix that no template here has, tiles
// that differ.
[[nodiscard]] tl::expected<tables::Constants, std::string> constants_of(const KernelNames& names);
// The names, or why these constants have none.
[[nodiscard]] tl::expected<KernelNames, std::string> names_of(const tables::Constants& constants);

}  // namespace kiln::tuned_config
