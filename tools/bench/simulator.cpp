// How fast the simulator executes `linear` at M = 16, all checks on, on one core and on all of them.

#include <benchmark/benchmark.h>

#include <cstdlib>

#include "runtime/compile/code_object.hpp"
#include "runtime/operators/linear.hpp"
#include "runtime/operators/linear_reference.hpp"
#include "runtime/sim/machine.hpp"
#include "tools/bench/service_setup.hpp"

namespace {

constexpr std::int64_t kM = 16;
constexpr std::int64_t kN = 4608;
constexpr std::int64_t kK = 4096;

std::byte* copy_in(kiln::sim::Memory& memory, const void* data, std::size_t bytes) {
    auto* const pointer = static_cast<std::byte*>(kiln::bench::value_or_exit(memory.allocate(bytes)));
    std::memcpy(pointer, data, bytes);
    return pointer;
}

void SimulateLinear(benchmark::State& state) {
    auto service = kiln::bench::value_or_exit(kiln::service::Service::open());
    const auto& op = kiln::operators::linear();
    const kiln::operators::Problem fields = {{"n", kN}, {"k", kK}};
    const auto problem = kiln::bench::value_or_exit(kiln::operators::complete(op, fields));
    const auto row = service->select(op, problem, kiln::tables::Target{"gfx950", {}});
    if (!row) {
        state.SkipWithError("no row");
        return;
    }
    const auto specialisation =
        kiln::bench::value_or_exit(service->specialise(**row, *(*row)->bucket_for(kM)));
    const auto artifact = kiln::bench::value_or_exit(service->obtain(specialisation));
    const auto program =
        kiln::bench::value_or_exit(kiln::sim::Program::load(artifact->code_object, artifact->listing.get()));

    const auto arrays = kiln::operators::make_linear_case(kM, kN, kK, 1);
    kiln::sim::Memory memory(std::size_t{1} << 30);
    const kiln::operators::LinearKernargs kernargs = {
        copy_in(memory, arrays.x.data(), arrays.x.size() * 2),
        copy_in(memory, arrays.w.data(), arrays.w.size()),
        reinterpret_cast<const float*>(copy_in(memory, arrays.w_scale.data(), arrays.w_scale.size() * 4)),
        kiln::bench::value_or_exit(memory.allocate(static_cast<std::size_t>(kM * kN * 2))),
        kM,
        static_cast<std::int32_t>(arrays.ldx)};
    const auto image = program->image();
    memory.admit(image.data(), image.size());

    const auto shape = specialisation.kernels.front().shape_for(kM);
    const kiln::sim::Dispatch dispatch = {program->find(specialisation.kernel_name), shape.grid, shape.block,
                                          shape.dynamic_lds_bytes, std::as_bytes(std::span(&kernargs, 1))};
    const kiln::sim::MachineConfig config = {static_cast<unsigned>(state.range(0))};
    std::uint64_t instructions = 0;
    for (auto _ : state) {
        instructions += kiln::bench::value_or_exit(kiln::sim::run(dispatch, memory, config)).instructions;
    }
    state.counters["wave_instructions"] =
        benchmark::Counter(static_cast<double>(instructions), benchmark::Counter::kIsRate);
}
BENCHMARK(SimulateLinear)
    ->Arg(1)
    ->Arg(2)
    ->ArgName("threads")
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond)
    ->Repetitions(9)
    ->ReportAggregatesOnly();

}  // namespace

BENCHMARK_MAIN();
