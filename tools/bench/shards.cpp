// One, two and four machines that share the compiling: what the slowest of them takes. This machine stands in
// for each of them in turn, with an empty cache, so the figure is that of as many machines of its kind.
// Beside the clock's there is the processor's time, on which a machine with other work to do has less of a
// say.

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "runtime/service/shards.hpp"
#include "tools/bench/scratch_folder.hpp"
#include "tools/bench/service_setup.hpp"

namespace {

using kiln::operators::Specialisation;

// Every eighth of what the tables have for gfx950: of every operator, and a hundred in a third of a minute.
std::vector<Specialisation> sample() {
    constexpr std::size_t kEvery = 8;
    const kiln::bench::ScratchFolder scratch;
    kiln::service::Overrides overrides;
    overrides.cache_dir = scratch.path().string();
    const auto service = kiln::bench::value_or_exit(kiln::service::Service::open(overrides));
    kiln::service::WarmFilter filter;
    filter.target = kiln::tables::Target{"gfx950", {}};
    std::vector<kiln::Error> errors;
    auto all = service->matching(filter, errors);
    std::vector<Specialisation> taken;
    for (std::size_t i = 0; i < all.size(); i += kEvery) {
        taken.push_back(std::move(all[i]));
    }
    return taken;
}

struct Spent {
    double seconds = 0;
    double processor_seconds = 0;
};

// Of this process and of its children that have ended.
double processor_seconds() {
    double sum = 0;
    for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
        rusage usage{};
        getrusage(who, &usage);
        for (const auto& time : {usage.ru_utime, usage.ru_stime}) {
            sum += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
        }
    }
    return sum;
}

Spent compile(const std::vector<Specialisation>& part) {
    const kiln::bench::ScratchFolder scratch;
    kiln::service::Overrides overrides;
    overrides.cache_dir = scratch.path().string();
    const auto before = processor_seconds();
    auto service = kiln::bench::value_or_exit(kiln::service::Service::open(overrides));
    const auto summary = service->warm(part, {});
    if (summary.compiled != part.size()) {
        std::fprintf(stderr, "benchmark: %zu of %zu compiled\n", static_cast<std::size_t>(summary.compiled),
                     part.size());
        std::exit(3);
    }
    service.reset();  // ends its workers
    return {summary.seconds, processor_seconds() - before};
}

void SlowestOfShards(benchmark::State& state) {
    const auto wanted = sample();
    const auto count = static_cast<std::uint32_t>(state.range(0));
    const auto shards = kiln::service::assign_shards(wanted, count);
    Spent slowest;
    Spent together;
    for (auto _ : state) {
        slowest = together = {};
        for (std::uint32_t shard = 0; shard < count; ++shard) {
            std::vector<Specialisation> part;
            for (std::size_t i = 0; i < wanted.size(); ++i) {
                if (shards[i] == shard) {
                    part.push_back(wanted[i]);
                }
            }
            const auto spent = compile(part);
            slowest.seconds = std::max(slowest.seconds, spent.seconds);
            slowest.processor_seconds = std::max(slowest.processor_seconds, spent.processor_seconds);
            together.seconds += spent.seconds;
            together.processor_seconds += spent.processor_seconds;
        }
        state.SetIterationTime(slowest.seconds);
    }
    state.counters["specialisations"] = static_cast<double>(wanted.size());
    state.counters["slowest_over_mean"] = slowest.seconds * count / together.seconds;
    state.counters["processor_s"] = together.processor_seconds;
    state.counters["slowest_over_mean_in_processor_time"] =
        slowest.processor_seconds * count / together.processor_seconds;
}
BENCHMARK(SlowestOfShards)
    ->Arg(1)
    ->Arg(2)
    ->Arg(4)
    ->ArgName("shards")
    ->UseManualTime()
    ->Unit(benchmark::kSecond)
    ->Iterations(1)
    ->Repetitions(3);

// The split itself, of what a large fleet's tables come to.
void SplitOfTenThousand(benchmark::State& state) {
    std::vector<kiln::service::ShardItem> items;
    for (int i = 0; i < 10'000; ++i) {
        items.push_back(
            {kiln::sha256(std::to_string(i)), 30'000 + static_cast<std::uint64_t>(i % 7) * 10'000});
    }
    for (auto _ : state) {
        benchmark::DoNotOptimize(
            kiln::service::assign_shards(items, static_cast<std::uint32_t>(state.range(0))));
    }
}
BENCHMARK(SplitOfTenThousand)->Arg(4)->Arg(100)->ArgName("shards")->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
