#include "runtime/tune/cost_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "runtime/compile/occupancy.hpp"

namespace kiln::tune {

namespace {

constexpr std::int64_t kUnits = 256;
constexpr double kSimds = 4;
constexpr double kCyclesPerUs = 2400;
constexpr double kLineBytes = 128;
constexpr double kWaveLanes = 64;
constexpr double kRegisterBytes = 4;

constexpr double kMemoryBytesPerUs = 5.6e6;   // of 8 TB/s
constexpr double kFabricBytesPerUs = 12.0e6;  // of 17.2 TB/s between the last cache and the dies
constexpr double kLatencyUs = 0.8;
constexpr double kLaunchUs = 2.1;

constexpr double kVectorCycles = 4;  // 64 lanes, 16 at a time
constexpr double kTranscendentalCycles = 16;
constexpr double kLineRequestCycles = 2;  // 64 bytes a clock
constexpr double kWaveIssueCycles = 4;
constexpr double kMemoryWaits = 2;  // of a work-group, one after the other

// Nanoseconds are noise, and a number of few digits reads the same everywhere.
double rounded(double us) {
    return std::round(us * 1e4) / 1e4;
}

// All times without the launch.
KernelCost parts_of(const KernelWork& kernel) {
    const device::ExecutionCounts& counts = kernel.counts;
    const auto groups = static_cast<double>(counts.work_groups);
    const std::int64_t room = std::max<std::int64_t>(
        1, compile::groups_per_unit(kernel.registers, kernel.waves_per_group, kernel.lds_bytes));
    const double busiest = std::ceil(groups / static_cast<double>(kUnits));
    const double share = busiest / groups;
    const double resident = std::min(static_cast<double>(room), busiest);
    const double waves = static_cast<double>(kernel.waves_per_group);

    KernelCost cost;
    cost.symbol = kernel.symbol;
    cost.work_groups = static_cast<std::int64_t>(counts.work_groups);
    cost.groups_per_unit = static_cast<std::int64_t>(busiest);
    cost.waves_per_simd =
        std::max<std::int64_t>(1, room * kernel.waves_per_group / static_cast<std::int64_t>(kSimds));

    const auto lines = [](std::uint64_t count) { return kLineBytes * static_cast<double>(count); };
    const double in_flight =
        resident * waves * kWaveLanes * kRegisterBytes * static_cast<double>(kernel.registers) / 2;
    const double fetched = lines(counts.die_lines_read);
    cost.memory_us = std::max(
        {lines(counts.global_lines_read + counts.global_lines_written) / kMemoryBytesPerUs,
         fetched / kFabricBytesPerUs, fetched * kLatencyUs / (in_flight * std::min(groups, double{kUnits}))});

    const auto transcendental = static_cast<double>(counts.transcendental);
    const double vector = (static_cast<double>(counts.valu) - transcendental) * kVectorCycles +
                          transcendental * kTranscendentalCycles;
    const double scalar = static_cast<double>(counts.salu - counts.waits + counts.smem);
    const double requests = static_cast<double>(counts.global_line_requests) * kLineRequestCycles;
    cost.issue_us = std::max({vector / kSimds, scalar, requests}) * share / kCyclesPerUs;
    cost.mfma_us = static_cast<double>(counts.mfma_cycles) / kSimds * share / kCyclesPerUs;
    cost.lds_us = static_cast<double>(counts.lds_cycles) * share / kCyclesPerUs;

    const double turns = std::ceil(busiest / static_cast<double>(room));
    const double of_a_wave = (static_cast<double>(counts.instructions) * kWaveIssueCycles +
                              static_cast<double>(counts.mfma_cycles)) /
                             static_cast<double>(counts.waves);
    cost.chain_us = turns * (of_a_wave / kCyclesPerUs + kMemoryWaits * kLatencyUs);
    return cost;
}

KernelCost cost_of(const KernelWork& kernel) {
    if (kernel.counts.work_groups == 0 || kernel.counts.waves == 0) {
        return {.symbol = kernel.symbol, .us = kLaunchUs, .launch_us = kLaunchUs, .bound_by = "launch"};
    }
    KernelCost cost = parts_of(kernel);
    const std::array<std::pair<double, const char*>, 4> parts{
        {{cost.memory_us + cost.issue_us, cost.memory_us >= cost.issue_us ? "memory" : "issue"},
         {cost.mfma_us, "mfma"},
         {cost.lds_us, "lds"},
         {cost.chain_us, "chain"}}};
    const auto& [us, name] = *std::ranges::max_element(parts, {}, &std::pair<double, const char*>::first);
    cost.bound_by = name;
    cost.launch_us = kLaunchUs;
    cost.us = rounded(us + kLaunchUs);
    for (double* part : {&cost.memory_us, &cost.issue_us, &cost.mfma_us, &cost.lds_us, &cost.chain_us}) {
        *part = rounded(*part);
    }
    return cost;
}

}  // namespace

Cost model_cost(std::span<const KernelWork> kernels) {
    Cost cost;
    for (const KernelWork& kernel : kernels) {
        cost.kernels.push_back(cost_of(kernel));
        cost.us += cost.kernels.back().us;
    }
    cost.us = rounded(cost.us);
    return cost;
}

}  // namespace kiln::tune
