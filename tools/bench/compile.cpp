// The pool of workers against one process of bare hipRTC, on all the specialisations that the shipped tables
// name. Whole processes are timed on both sides; kiln's side also disassembles and writes the cache.

#include <benchmark/benchmark.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include <nlohmann/json.hpp>

#include "runtime/compile/toolchain.hpp"
#include "tools/bench/scratch_folder.hpp"
#include "tools/bench/service_setup.hpp"

namespace {

// The requests as bare_hiprtc reads them.
void write_requests(const std::vector<kiln::operators::Specialisation>& specialisations,
                    const std::filesystem::path& path) {
    auto requests = nlohmann::json::array();
    for (const auto& specialisation : specialisations) {
        const auto& request = specialisation.request;
        auto headers = nlohmann::json::array();
        for (const auto& header : request.headers) {
            headers.push_back({{"name", header.name}, {"text", header.text}});
        }
        requests.push_back({{"name", request.name},
                            {"source", request.source},
                            {"headers", headers},
                            {"target", request.target},
                            {"options", request.options}});
    }
    std::ofstream(path) << requests;
}

int run_and_wait(const std::vector<std::string>& words) {
    const pid_t child = fork();
    if (child == 0) {
        setenv("AMD_COMGR_CACHE", "0", 1);
        std::vector<char*> arguments;
        for (const auto& word : words) {
            arguments.push_back(const_cast<char*>(word.c_str()));
        }
        arguments.push_back(nullptr);
        execv(arguments[0], arguments.data());
        std::_Exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
}

void OneProcessOfBareHiprtc(benchmark::State& state) {
    const kiln::bench::ScratchFolder scratch;
    auto service = kiln::bench::value_or_exit(kiln::service::Service::open());
    const auto specialisations = kiln::bench::all_specialisations(*service);
    const auto requests = scratch.path() / "requests.json";
    write_requests(specialisations, requests);

    const auto toolchain =
        kiln::bench::value_or_exit(kiln::compile::find_toolchain({}, kiln::compile::Family::amdgpu));
    std::vector<std::string> words;
    if (!toolchain.loader.empty()) {
        words = {toolchain.loader.string(), "--library-path", toolchain.folder.string()};
    }
    words.insert(words.end(), {KILN_BARE_HIPRTC, toolchain.rtc.string(), requests.string()});
    for (auto _ : state) {
        if (run_and_wait(words) != 0) {
            state.SkipWithError("bare_hiprtc failed");
            return;
        }
    }
    state.counters["specialisations"] = static_cast<double>(specialisations.size());
}
BENCHMARK(OneProcessOfBareHiprtc)->UseRealTime()->Unit(benchmark::kSecond)->Iterations(1)->Repetitions(5);

void PoolOfWorkers(benchmark::State& state) {
    for (auto _ : state) {
        state.PauseTiming();
        const kiln::bench::ScratchFolder scratch;
        kiln::service::Overrides overrides;
        overrides.cache_dir = scratch.path().string();
        overrides.workers = static_cast<unsigned>(state.range(0));
        auto service = kiln::bench::value_or_exit(kiln::service::Service::open(overrides));
        state.ResumeTiming();

        kiln::bench::warm(*service);

        state.PauseTiming();
        service.reset();
        state.ResumeTiming();
    }
}
BENCHMARK(PoolOfWorkers)
    ->Arg(1)
    ->Arg(static_cast<int>(std::thread::hardware_concurrency()))
    ->ArgName("workers")
    ->UseRealTime()
    ->Unit(benchmark::kSecond)
    ->Iterations(1)
    ->Repetitions(5);

}  // namespace

BENCHMARK_MAIN();
