#include "runtime/sim/execute.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "runtime/sim/code.hpp"
#include "runtime/sim/fault.hpp"

namespace kiln::sim {
namespace {

// Instructions of one turn: a wave that waits for another by reading memory must let it run.
constexpr std::uint32_t kTurn = 1u << 16;

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
void run_turn(Wave& w, const Instruction*& current) {
    const Instruction* const code = w.code->instructions.data();
    const std::size_t count = w.code->instructions.size();
    for (std::uint32_t n = 0; n < kTurn && !w.stopped; ++n) {
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
}

}  // namespace

tl::expected<void, RunError> run_group(std::span<Wave> waves, std::string_view kernel, const StopSign& stop) {
    const auto broken = [](std::string message, bool bad_address) {
        return tl::unexpected<RunError>(
            RunError{{ErrorCode::device_failed, Stage::device, std::move(message)}, bad_address});
    };
    const Instruction* current = nullptr;
    for (;;) {
        bool all_ended = true, all_waiting = true;
        for (Wave& w : waves) {
            if (w.stopped) {
                all_ended &= w.ended;
                continue;
            }
            if (stop()) [[unlikely]] {
                return broken(fmt::format("kernel {}: stopped before its end", kernel), false);
            }
            try {
                run_turn(w, current);
            } catch (const Fault& f) {
                const device::Dim3 id = w.group->id;
                const std::string lane = f.lane < 0 ? std::string{} : fmt::format(", lane {}", f.lane);
                return broken(
                    fmt::format("kernel {}: '{}' at offset {}, work-group ({}, {}, {}), wave {}{}: {}",
                                kernel, current == nullptr ? "" : current->text,
                                current == nullptr ? 0 : current->text_offset, id.x, id.y, id.z, w.number,
                                lane, f.rule),
                    f.bad_address);
            }
            all_ended &= w.ended;
            all_waiting &= w.stopped;
        }
        if (all_ended) {
            return {};
        }
        if (all_waiting) {
            for (Wave& w : waves) {
                if (w.at_barrier) {
                    w.at_barrier = w.stopped = false;
                }
            }
        }
    }
}

}  // namespace kiln::sim
