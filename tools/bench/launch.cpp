// What a plan's launch adds to the driver's own call.

#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "kiln/kiln.hpp"
#include "tools/bench/scratch_folder.hpp"

namespace {

std::atomic<std::uint64_t> num_allocations{0};

}  // namespace

// Every allocation of the process comes through here, those of libkiln and the driver too. glibc's own entry
// points do the work.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);

void* malloc(std::size_t bytes) {
    num_allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
    num_allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_calloc(count, bytes);
}
void* realloc(void* pointer, std::size_t bytes) {
    num_allocations.fetch_add(1, std::memory_order_relaxed);
    return __libc_realloc(pointer, bytes);
}
}

namespace {

constexpr std::int64_t kN = 4608;
constexpr std::int64_t kK = 4096;
constexpr std::int64_t kM = 8;

using ModuleLaunch = int (*)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             void*, void**, void**);

// Aligned as device memory is; never read, since the double launches nothing.
alignas(256) std::byte arrays[4][256];

const kiln::Linear::Args kArgs = {.x = arrays[0],
                                  .ldx = kK,
                                  .w = arrays[1],
                                  .w_scale = reinterpret_cast<const float*>(arrays[2]),
                                  .out = arrays[3]};

// The plan is compiled once, into a cache that goes with the process.
const kiln::Plan<kiln::Linear>& plan() {
    static const kiln::bench::ScratchFolder cache;
    static const std::string folder = cache.path().string();
    static const auto service = kiln::Service::open(
        {.cache_dir = folder.c_str(), .device = "hip", .hip_library = KILN_DRIVER_DOUBLE});
    static const auto instance = service.prepare(0, kiln::Linear{.n = kN, .k = kK});
    if (!instance) {
        std::fprintf(stderr, "benchmark: %s\n", instance.failure().message.c_str());
        std::exit(3);
    }
    return instance;
}

// What an engine without kiln would do: pack the arguments and call the driver.
void BareDriverCall(benchmark::State& state) {
    void* const library = dlopen(KILN_DRIVER_DOUBLE, RTLD_NOW);
    const auto launch = reinterpret_cast<ModuleLaunch>(dlsym(library, "hipModuleLaunchKernel"));
    // HIP_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE and _END of hip_runtime_api.h.
    void* const kPointer = reinterpret_cast<void*>(1);
    void* const kSize = reinterpret_cast<void*>(2);
    void* const kEnd = reinterpret_cast<void*>(3);
    int function = 0;
    for (auto _ : state) {
        struct {
            const void* x;
            const void* w;
            const void* w_scale;
            void* out;
            std::int32_t m, ldx;
        } kernargs = {kArgs.x, kArgs.w, kArgs.w_scale, kArgs.out, kM, kK};
        std::size_t bytes = sizeof(kernargs);
        void* extra[] = {kPointer, &kernargs, kSize, &bytes, kEnd};
        benchmark::DoNotOptimize(launch(&function, 144, 1, 1, 1024, 1, 1, 0, nullptr, nullptr, extra));
    }
}
BENCHMARK(BareDriverCall)->Repetitions(9)->ReportAggregatesOnly();

void PlanLaunch(benchmark::State& state) {
    const auto& linear = plan();
    const auto allocations_before = num_allocations.load();
    std::uint64_t failures = 0;
    for (auto _ : state) {
        failures += linear.launch(nullptr, kM, kArgs).ok() ? 0 : 1;
    }
    state.counters["allocations"] = static_cast<double>(num_allocations.load() - allocations_before);
    state.counters["failures"] = static_cast<double>(failures);
}
BENCHMARK(PlanLaunch)->Repetitions(9)->ReportAggregatesOnly();

}  // namespace

BENCHMARK_MAIN();
