#include "runtime/service/budget.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/compile/occupancy.hpp"
#include "runtime/compile/target_family.hpp"

namespace kiln::service {

namespace {

void judge(const operators::KernelLaunch& launch, const compile::KernelInfo& kernel,
           const tables::Budget& budget, bool is_amd, std::vector<std::string>& complaints) {
    const auto require = [&](bool holds, std::string_view what, std::int64_t found) {
        if (!holds) {
            complaints.push_back(fmt::format("{}: expected {}, found {}", launch.symbol, what, found));
        }
    };
    require(kernel.scratch_bytes == 0, "no scratch memory", kernel.scratch_bytes);
    require(kernel.vgpr_spills == 0, "no spilled vector registers", kernel.vgpr_spills);
    require(kernel.sgpr_spills == 0, "no spilled scalar registers", kernel.sgpr_spills);
    const std::int64_t lds = std::int64_t{kernel.lds_bytes} + launch.shape.dynamic_lds_bytes;
    if (budget.lds_bytes) {
        require(lds <= *budget.lds_bytes, fmt::format("at most {} bytes of LDS", *budget.lds_bytes), lds);
    }
    if (budget.waves_per_simd && is_amd) {
        const device::Dim3& block = launch.shape.block;
        const std::int64_t waves =
            (std::int64_t{block.x} * block.y * block.z + kernel.wavefront - 1) / kernel.wavefront;
        const std::int64_t room = compile::waves_per_simd(kernel, waves, lds);
        require(room >= *budget.waves_per_simd,
                fmt::format("room for {} waves on a SIMD", *budget.waves_per_simd), room);
    }
}

}  // namespace

std::vector<std::string> over_budget(const operators::Specialisation& specialisation,
                                     const compile::CodeObject& code_object) {
    const bool is_amd = compile::family_of(code_object.target) != compile::Family::cuda;
    std::vector<std::string> complaints;
    for (const operators::KernelLaunch& launch : specialisation.kernels) {
        const auto kernel = std::ranges::find(code_object.kernels, launch.symbol, &compile::KernelInfo::name);
        if (kernel != code_object.kernels.end()) {
            judge(launch, *kernel, specialisation.bucket.budget, is_amd, complaints);
        }
    }
    return complaints;
}

}  // namespace kiln::service
