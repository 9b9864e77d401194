#include "runtime/sim/execute.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/sim/code.hpp"
#include "runtime/sim/fault.hpp"
#include "runtime/sim/races.hpp"

namespace kiln::sim {
namespace {

[[gnu::noinline, gnu::cold]] void fault_limit(const Wave& w, const Instruction& i) {
    if (i.needs_v > w.limit_v) {
        fault(-1, "v{} is named, the kernel has {} VGPRs", i.needs_v - 1, w.limit_v);
    }
    if (i.needs_a > w.limit_a) {
        fault(-1, "a{} is named, the kernel has {} AGPRs", i.needs_a - 1, w.limit_a);
    }
    fault(-1, "s{} is named, the kernel has {} SGPRs", i.needs_s - 1, w.limit_s);
}

// `current` tells the caller at which instruction a fault came.
std::uint32_t run_turn(Wave& w, std::uint32_t limit, const Instruction*& current) {
    const Instruction* const code = w.code->instructions.data();
    const std::size_t count = w.code->instructions.size();
    std::uint32_t n = 0;
    for (; n < limit && !w.stopped; ++n) {
        if (w.pc >= count) [[unlikely]] {
            fault(-1, "the wave ran past the last instruction");
        }
        const Instruction& i = code[w.pc];
        current = &i;
        if (i.needs_v > w.limit_v || i.needs_a > w.limit_a || i.needs_s > w.limit_s) [[unlikely]] {
            fault_limit(w, i);
        }
        ++w.pc;
        ++w.executed[static_cast<int>(i.category)];
        i.run(w, i);
    }
    return n;
}

}  // namespace

tl::expected<std::uint32_t, RunError> run_wave_turn(Wave& w, std::uint32_t limit, std::string_view kernel) {
    const Instruction* current = nullptr;
    try {
        return run_turn(w, limit, current);
    } catch (const Fault& f) {
        const device::Dim3 id = w.group->id;
        const std::string lane = f.lane < 0 ? std::string{} : fmt::format(", lane {}", f.lane);
        return tl::unexpected(
            RunError{{ErrorCode::device_failed, Stage::device,
                      fmt::format("kernel {}: '{}' at offset {}, work-group ({}, {}, {}), wave {}{}: {}",
                                  kernel, current == nullptr ? "" : current->text,
                                  current == nullptr ? 0 : current->text_offset, id.x, id.y, id.z, w.number,
                                  lane, f.rule)},
                     f.bad_address});
    }
}

GroupState settle_group(std::span<Wave> waves) {
    if (!std::ranges::all_of(waves, &Wave::stopped)) {
        return GroupState::running;
    }
    if (std::ranges::all_of(waves, &Wave::ended)) {
        return GroupState::ended;
    }
    if (GroupRaces* const races = waves.front().group->races) {
        races->launch->barrier(*races);
    }
    for (Wave& w : waves) {
        if (w.at_barrier) {
            w.at_barrier = w.stopped = false;
        }
    }
    return GroupState::released;
}

}  // namespace kiln::sim
