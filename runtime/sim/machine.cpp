#include "runtime/sim/machine.hpp"

#include <xmmintrin.h>
#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/cores.hpp"
#include "runtime/sim/execute.hpp"
#include "runtime/sim/launch.hpp"

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

void add_wave(device::ExecutionCounts& total, const Wave& w) {
    const auto of = [&](Category category) { return w.executed[static_cast<int>(category)]; };
    total.valu += of(Category::valu);
    total.mfma += of(Category::mfma);
    total.salu += of(Category::salu);
    total.smem += of(Category::smem);
    total.vmem += of(Category::vmem);
    total.lds += of(Category::lds);
    for (const std::uint64_t executed : w.executed) {
        total.instructions += executed;
    }
    total.global_bytes_read += w.global_read;
    total.global_bytes_written += w.global_written;
    total.scalar_bytes_read += w.scalar_read;
    total.lds_bytes_read += w.lds_read;
    total.lds_bytes_written += w.lds_written;
    ++total.waves;
}

// The work-groups of one launch, shared out to threads in order. They start in order, and one that breaks a
// rule stops only those after it, so the error of the lowest work-group that has one is found whatever the
// number of threads is.
class Run {
  public:
    Run(const Launch& launch, const Memory& memory, const MachineConfig& config)
        : launch_(launch), memory_(memory), config_(config), end_(launch.num_groups()) {}

    void work() noexcept;
    tl::expected<device::ExecutionCounts, RunError> result() {
        if (error_) {
            return tl::unexpected(std::move(*error_));
        }
        return total_;
    }

  private:
    void work_through();
    void fail_at(std::uint64_t group, RunError error);

    const Launch& launch_;
    const Memory& memory_;
    const MachineConfig& config_;

    std::atomic<std::uint64_t> next_{0};
    std::atomic<std::uint64_t> end_;  // the first work-group that broke a rule, else their number

    std::mutex mutex_;
    device::ExecutionCounts total_;  // protected by mutex_
    std::optional<RunError> error_;  // of work-group end_; protected by mutex_
};

void Run::fail_at(std::uint64_t group, RunError error) {
    const std::lock_guard lock(mutex_);
    if (group < end_.load(std::memory_order_relaxed)) {
        end_.store(group, std::memory_order_relaxed);
        error_ = std::move(error);
    }
}

void Run::work() noexcept {
    try {
        work_through();
    } catch (const std::exception& e) {  // no memory: nothing else is thrown
        fail_at(0, {{ErrorCode::device_failed, Stage::device, e.what()}});
    }
}

void Run::work_through() {
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
    for (;;) {
        const std::uint64_t index = next_.fetch_add(1, std::memory_order_relaxed);
        if (index >= end_.load(std::memory_order_relaxed)) {
            break;
        }
        launch_.start_group(index, group);
        for (unsigned n = 0; n < num_waves; ++n) {
            launch_.start_wave(group, n, waves[n]);
            waves[n].group = &group;
        }
        auto done = run_group({waves.get(), num_waves}, launch_.kernel().name, {config_.stop, &end_, index});
        for (unsigned n = 0; n < num_waves; ++n) {
            add_wave(counts, waves[n]);
        }
        ++counts.work_groups;
        if (!done) {
            fail_at(index, std::move(done.error()));
        }
    }
    const std::lock_guard lock(mutex_);
    add(total_, counts);
}

}  // namespace

void add(device::ExecutionCounts& total, const device::ExecutionCounts& part) {
    total.instructions += part.instructions;
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
}

Result<device::ExecutionCounts> run(const Dispatch& dispatch, const Memory& memory,
                                    const MachineConfig& config, bool* bad_address) {
    auto launch = Launch::prepare(dispatch);
    if (!launch) {
        return fail(launch);
    }
    Run run(**launch, memory, config);
    const unsigned wanted = config.threads != 0 ? config.threads : cores_of_this_process();
    const auto threads = static_cast<unsigned>(std::min<std::uint64_t>(wanted, (*launch)->num_groups()));
    std::vector<std::thread> helpers;
    helpers.reserve(threads);
    try {
        for (unsigned n = 1; n < threads; ++n) {
            helpers.emplace_back([&run] { run.work(); });
        }
    } catch (const std::system_error&) {
        // No more threads are to be had: those that started do all the work.
    }
    run.work();
    for (std::thread& helper : helpers) {
        helper.join();
    }
    auto result = run.result();
    if (!result && bad_address != nullptr) {
        *bad_address = result.error().bad_address;
    }
    return result;
}

}  // namespace kiln::sim
