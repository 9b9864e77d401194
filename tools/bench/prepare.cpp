// Opening a service, and preparing every problem of `linear` in the shipped tables from a warm cache, and
// from a bundle where there is no compiler: what an engine waits for when it starts. Each iteration is a
// fresh process, since the first look at the toolchain's files is part of it.

#include <benchmark/benchmark.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "cache/bundle_file.hpp"
#include "tools/bench/scratch_folder.hpp"
#include "tools/bench/service_setup.hpp"

namespace {

using Clock = std::chrono::steady_clock;

struct Sample {
    double open_seconds = 0;
    double seconds = 0;
    std::uint64_t plans = 0;
    std::uint64_t code_objects = 0;
};

Sample open_and_prepare(const kiln::service::Overrides& overrides) {
    const auto start = Clock::now();
    auto service = kiln::bench::value_or_exit(kiln::service::Service::open(overrides));
    Sample sample;
    sample.open_seconds = std::chrono::duration<double>(Clock::now() - start).count();
    for (const auto& row : service->rows(kiln::bench::linear_of_gfx950())) {
        const auto* op = kiln::operators::find_operator(row->operator_name);
        const auto plan = service->prepare(0, *op, row->problem);
        if (!plan) {
            std::fprintf(stderr, "benchmark: %s\n", plan.error().error.message.c_str());
            std::_Exit(3);
        }
        ++sample.plans;
    }
    sample.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    sample.code_objects = service->statistics().loads;
    return sample;
}

// In a child, so that nothing is memoised; the sample comes back through a pipe.
Sample in_fresh_process(const kiln::service::Overrides& overrides) {
    int ends[2];
    if (pipe(ends) != 0) {
        std::exit(3);
    }
    const pid_t child = fork();
    if (child == 0) {
        const auto sample = open_and_prepare(overrides);
        std::_Exit(write(ends[1], &sample, sizeof(sample)) == sizeof(sample) ? 0 : 3);
    }
    Sample sample;
    const bool read_all = read(ends[0], &sample, sizeof(sample)) == sizeof(sample);
    int status = 0;
    waitpid(child, &status, 0);
    close(ends[0]);
    close(ends[1]);
    if (!read_all || status != 0) {
        std::exit(3);
    }
    return sample;
}

// A cache that holds everything, made once, and a worker that leaves a mark if it is ever started.
struct WarmCache {
    kiln::bench::ScratchFolder scratch;
    kiln::service::Overrides overrides =
        kiln::bench::overrides_for(scratch.path() / "cache", KILN_DRIVER_DOUBLE);
    std::filesystem::path mark = scratch.path() / "worker-was-started";

    WarmCache() {
        kiln::bench::warm(*kiln::bench::value_or_exit(kiln::service::Service::open(overrides)));
        const auto trap = scratch.path() / "trap";
        std::ofstream(trap) << "#!/bin/sh\ntouch '" << mark.string() << "'\n";
        std::filesystem::permissions(trap, std::filesystem::perms::owner_all);
        overrides.worker = trap.string();
    }
};

const WarmCache& warm_cache() {
    static const WarmCache cache;
    return cache;
}

// The same in a bundle, on a machine with an empty cache and no compiler.
struct Bundled {
    kiln::bench::ScratchFolder scratch;
    kiln::service::Overrides overrides =
        kiln::bench::overrides_for(scratch.path() / "empty", KILN_DRIVER_DOUBLE);

    Bundled() {
        const auto path = scratch.path() / "all.kiln";
        const auto service = kiln::bench::value_or_exit(kiln::service::Service::open(warm_cache().overrides));
        kiln::cache::BundleWriter writer;
        for (const auto& specialisation : kiln::bench::all_specialisations(*service)) {
            const auto artifact = kiln::bench::value_or_exit(service->builder().obtain(specialisation));
            const auto key =
                kiln::bench::value_or_exit(kiln::cache::Key::from_document(artifact->key_document));
            const kiln::cache::Entry entry{artifact->code_object, artifact->metadata.get(),
                                           artifact->listing.get()};
            if (!writer.add(kiln::bench::value_or_exit(kiln::cache::serialise(key, entry)))) {
                std::exit(3);
            }
        }
        if (!kiln::cache::publish_bundle(path, kiln::bench::value_or_exit(writer.write("{}")))) {
            std::exit(3);
        }
        overrides.cache_path = path.string();
    }
};

void Open(benchmark::State& state) {
    for (auto _ : state) {
        state.SetIterationTime(in_fresh_process(warm_cache().overrides).open_seconds);
    }
}
BENCHMARK(Open)->UseManualTime()->Unit(benchmark::kMillisecond)->Repetitions(9)->ReportAggregatesOnly();

void OpenAndPrepareAll(benchmark::State& state) {
    const WarmCache& cache = warm_cache();
    Sample sample;
    for (auto _ : state) {
        sample = in_fresh_process(cache.overrides);
        state.SetIterationTime(sample.seconds);
    }
    state.counters["plans"] = static_cast<double>(sample.plans);
    state.counters["code_objects"] = static_cast<double>(sample.code_objects);
    state.counters["workers_started"] = std::filesystem::exists(cache.mark) ? 1 : 0;
}
BENCHMARK(OpenAndPrepareAll)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Repetitions(9)
    ->ReportAggregatesOnly();

void PrepareAllFromABundleWithoutACompiler(benchmark::State& state) {
    static const Bundled bundled;
    const auto nowhere = (bundled.scratch.path() / "none").string();
    setenv("KILN_ROCM_PREFIX", nowhere.c_str(), 1);
    setenv("KILN_CUDA_PREFIX", nowhere.c_str(), 1);
    Sample sample;
    for (auto _ : state) {
        sample = in_fresh_process(bundled.overrides);
        state.SetIterationTime(sample.seconds - sample.open_seconds);
    }
    state.counters["open_ms"] = 1e3 * sample.open_seconds;
    state.counters["plans"] = static_cast<double>(sample.plans);
    state.counters["code_objects"] = static_cast<double>(sample.code_objects);
}
BENCHMARK(PrepareAllFromABundleWithoutACompiler)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Repetitions(9)
    ->ReportAggregatesOnly();

}  // namespace

BENCHMARK_MAIN();
