// How the kernels of a specialisation are launched: what is settled when a plan is made, and what M decides.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "runtime/device/device.hpp"

namespace kiln::operators {

// How many work-groups a launch for M tokens has in x:
//
//     min(most, fixed + per_step * ceil(M * per_token / step))
struct GridRule {
    std::uint32_t fixed = 0;
    std::uint32_t per_step = 0;
    std::uint32_t step = 1;       // tokens, or pairs, that a step serves
    std::uint32_t per_token = 1;  // 1 where a step counts tokens; where it counts pairs, the slots of a token
    std::uint32_t most = 0x7fffffff;

    [[nodiscard]] constexpr std::uint32_t operator()(std::int64_t m) const {
        const std::uint64_t count = static_cast<std::uint64_t>(m) * per_token;
        const std::uint64_t steps = (count + step - 1) / step;
        return static_cast<std::uint32_t>(std::min<std::uint64_t>(most, fixed + per_step * steps));
    }
};

// An explicit argument of a kernel as a launch packs it.
struct KernelArgument {
    std::string_view name;
    std::uint32_t offset = 0;  // bytes
    std::uint32_t size = 0;
};

// The arguments that all kernels of a template take.
struct KernargBlock {
    std::span<const KernelArgument> arguments;
    std::uint32_t bytes = 0;
};

// One kernel of a code object.
struct KernelLaunch {
    std::string symbol;
    device::LaunchShape shape;  // but for grid.x
    GridRule grid_x;

    [[nodiscard]] device::LaunchShape shape_for(std::int64_t m) const {
        device::LaunchShape result = shape;
        result.grid.x = grid_x(m);
        return result;
    }
};

// The symbol of one of several kernels: "kiln_fused_moe_h4096_m40" and "gate_up".
[[nodiscard]] inline std::string kernel_symbol(std::string_view kernel_name, std::string_view part) {
    return fmt::format("{}_{}", kernel_name, part);
}

// Memory that a launch needs besides its arrays, in bytes.
struct WorkspaceNeed {
    // Counters: zero when a launch begins, and zero again when it ends. The same for every M of a bucket.
    std::int64_t zeroed = 0;
    // Without defined contents when a launch begins. More tokens need no less.
    std::int64_t scratch = 0;

    [[nodiscard]] bool any() const { return zeroed > 0 || scratch > 0; }
};

// The two parts of a caller's workspace, as a launch packs them. Each aligned to 256 bytes; null where the
// bucket needs no workspace and the caller gave none.
struct Workspace {
    void* zeroed = nullptr;
    void* scratch = nullptr;
};

}  // namespace kiln::operators
