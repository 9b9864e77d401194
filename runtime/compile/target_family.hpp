// Which vendor's compiler builds for a target, and whose format its code objects have.
#pragma once

#include <string_view>

namespace kiln::compile {

enum class Family {
    amdgpu,  // "gfx950", "gfx950:xnack-": hipRTC, code objects of the HSA ABI
    cuda,    // "sm_90a": NVRTC, cubins
};

// Any name that is not NVIDIA's is hipRTC's to know or to refuse.
[[nodiscard]] constexpr Family family_of(std::string_view target) {
    return target.starts_with("sm_") ? Family::cuda : Family::amdgpu;
}

// What messages call its toolchain: "ROCm", "CUDA".
[[nodiscard]] constexpr std::string_view toolchain_name(Family family) {
    return family == Family::cuda ? "CUDA" : "ROCm";
}

}  // namespace kiln::compile
