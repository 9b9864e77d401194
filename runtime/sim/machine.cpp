#include "runtime/sim/machine.hpp"

#include <sched.h>
#include <xmmintrin.h>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/sim/execute.hpp"
#include "runtime/sim/launch.hpp"

namespace kiln::sim {
namespace {

unsigned cores_of_this_process() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        return static_cast<unsigned>(CPU_COUNT(&set));
    }
    return std::max(1u, std::thread::hardware_concurrency());
}

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

void add_wave(device::ExecutionCounts& total, const Wave& w) {
    const auto of = [&](Category category) { return w.executed[static_cast<int>(category)]; };
    total.valu += of(Category::valu);
    total.mfma += of(Category::mfma);
    total.salu += of(Category::salu);
    total.smem += of(Category::smem);
    total.vmem += of(Category::vmem);
    total.lds += of(Category::lds);
    total.global_bytes_read += w.global_read;
    total.global_bytes_written += w.global_written;
    total.scalar_bytes_read += w.scalar_read;
    total.lds_bytes_read += w.lds_read;
    total.lds_bytes_written += w.lds_written;
    ++total.waves;
}

void add_counts(device::ExecutionCounts& total, const device::ExecutionCounts& part) {
    total.valu += part.valu;
    total.mfma += part.mfma;
    total.salu += part.salu;
    total.smem += part.smem;
    total.vmem += part.vmem;
    total.lds += part.lds;
    total.global_bytes_read += part.global_bytes_read;
    total.global_bytes_written += part.global_bytes_written;
    total.scalar_bytes_read += part.scalar_bytes_read;
    total.lds_bytes_read += part.lds_bytes_read;
    total.lds_bytes_written += part.lds_bytes_written;
    total.work_groups += part.work_groups;
    total.waves += part.waves;
    total.instructions = total.valu + total.mfma + total.salu + total.smem + total.vmem + total.lds;
}

// The work-groups of one launch, shared out to threads in order. They start in order, so the error of the
// lowest work-group that has one is found whatever the number of threads is: it had started before any later
// one could stop the run.
class Run {
  public:
    Run(const Launch& launch, const Memory& memory, const MachineConfig& config)
        : launch_(launch), memory_(memory), config_(config) {}

    void work();
    Result<device::ExecutionCounts> result() {
        if (error_) {
            return tl::unexpected(std::move(*error_));
        }
        return total_;
    }

  private:
    const Launch& launch_;
    const Memory& memory_;
    const MachineConfig& config_;

    std::atomic<std::uint64_t> next_{0};
    std::atomic<bool> stop_{false};

    std::mutex mutex_;
    device::ExecutionCounts total_;  // protected by mutex_
    std::optional<Error> error_;     // protected by mutex_
    std::uint64_t error_group_ = 0;  // protected by mutex_
};

void Run::work() {
    const DefaultFloatMode float_mode;
    const unsigned num_waves = launch_.num_waves();
    const std::unique_ptr<Wave[]> waves(new Wave[num_waves]);
    // Never empty, so that there is an address.
    std::vector<std::uint8_t> lds(launch_.lds_bytes() + 1), written(launch_.lds_bytes() + 1);
    WorkGroup group;
    group.lds = lds.data();
    group.lds_written = written.data();
    group.memory = &memory_;
    group.matrix_order = config_.matrix_order;
    device::ExecutionCounts counts;
    while (!stop_.load(std::memory_order_relaxed)) {
        const std::uint64_t index = next_.fetch_add(1, std::memory_order_relaxed);
        if (index >= launch_.num_groups()) {
            break;
        }
        launch_.start_group(index, group);
        for (unsigned n = 0; n < num_waves; ++n) {
            launch_.start_wave(group, n, waves[n]);
            waves[n].group = &group;
        }
        auto done = run_group({waves.get(), num_waves}, launch_.kernel().name);
        for (unsigned n = 0; n < num_waves; ++n) {
            add_wave(counts, waves[n]);
        }
        ++counts.work_groups;
        if (!done) {
            const std::lock_guard lock(mutex_);
            if (!error_ || index < error_group_) {
                error_ = std::move(done.error());
                error_group_ = index;
            }
            stop_.store(true, std::memory_order_relaxed);
        }
    }
    const std::lock_guard lock(mutex_);
    add_counts(total_, counts);
}

}  // namespace

Result<device::ExecutionCounts> run(const Dispatch& dispatch, const Memory& memory,
                                    const MachineConfig& config) {
    auto launch = Launch::prepare(dispatch);
    if (!launch) {
        return fail(launch);
    }
    Run run(**launch, memory, config);
    const unsigned wanted = config.threads != 0 ? config.threads : cores_of_this_process();
    const auto threads = static_cast<unsigned>(std::min<std::uint64_t>(wanted, (*launch)->num_groups()));
    std::vector<std::thread> helpers;
    for (unsigned n = 1; n < threads; ++n) {
        helpers.emplace_back([&run] { run.work(); });
    }
    run.work();
    for (std::thread& helper : helpers) {
        helper.join();
    }
    return run.result();
}

}  // namespace kiln::sim
