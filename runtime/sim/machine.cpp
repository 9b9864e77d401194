#include "runtime/sim/machine.hpp"

#include <xmmintrin.h>
#include <algorithm>
#include <deque>
#include <exception>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "base/cores.hpp"
#include "runtime/sim/counts.hpp"
#include "runtime/sim/groups.hpp"
#include "runtime/sim/late_memory.hpp"
#include "runtime/sim/launch.hpp"
#include "runtime/sim/lines.hpp"
#include "runtime/sim/races.hpp"
#include "runtime/sim/schedule.hpp"

namespace kiln::sim {
namespace {

// Nearest even, denormals kept, exceptions masked, whatever the calling program has set.
class DefaultFloatMode {
  public:
    DefaultFloatMode() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
    ~DefaultFloatMode() { _mm_setcsr(saved_); }
    DefaultFloatMode(const DefaultFloatMode&) = delete;
    DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;

  private:
    unsigned saved_;
};

// What one host thread does of a launch.
void work(Schedule& schedule, Groups& groups, device::ExecutionCounts& counts) noexcept {
    const DefaultFloatMode float_mode;
    try {
        counts = schedule.run();
    } catch (const std::exception& e) {  // no memory: nothing else is thrown
        groups.fail(0, {{ErrorCode::device_failed, Stage::device, e.what()}});
    }
}

}  // namespace

Result<device::ExecutionCounts> run(const Dispatch& dispatch, const Memory& memory,
                                    const MachineConfig& config, bool* bad_address) {
    auto launch = Launch::prepare(dispatch);
    if (!launch) {
        return fail(launch);
    }
    Groups groups((*launch)->num_groups(), config.order, config.stop);
    std::optional<LateMemory> late;
    if (config.scopes == Scopes::late) {
        late.emplace();
    }
    std::optional<Races> races;
    if (config.checks.races) {
        races.emplace(dispatch.grid, (*launch)->num_waves(), (*launch)->lds_bytes());
    }
    LinesTouched lines;
    const bool alone = late || races || config.order.kind != RunOrder::any;
    const std::uint64_t wanted = alone ? 1 : config.threads != 0 ? config.threads : cores_of_this_process();
    const std::uint64_t threads = std::min(wanted, (*launch)->num_groups());
    struct Worker {
        Schedule schedule;
        device::ExecutionCounts counts;
    };
    std::deque<Worker> workers;
    std::vector<std::thread> helpers;
    const auto add_worker = [&]() -> Worker& {
        const std::uint64_t most = std::max<std::uint64_t>((*launch)->max_in_flight() / threads, 1);
        return workers.emplace_back(Worker{{**launch, memory, config, groups, lines, late ? &*late : nullptr,
                                            races ? &*races : nullptr, most},
                                           {}});
    };
    helpers.reserve(threads);
    try {
        for (std::uint64_t n = 1; n < threads; ++n) {
            Worker& worker = add_worker();
            helpers.emplace_back([&] { work(worker.schedule, groups, worker.counts); });
        }
    } catch (const std::system_error&) {
        // No more threads are to be had: those that started do all the work.
    }
    Worker& own = add_worker();
    work(own.schedule, groups, own.counts);
    for (std::thread& helper : helpers) {
        helper.join();
    }
    if (late) {
        late->finish();
    }
    if (const auto& error = groups.error()) {
        if (bad_address != nullptr) {
            *bad_address = error->bad_address;
        }
        return tl::unexpected<Error>(*error);
    }
    device::ExecutionCounts total;
    for (const Worker& worker : workers) {
        add(total, worker.counts);
    }
    return total;
}

}  // namespace kiln::sim
