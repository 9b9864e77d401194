// How fast the simulator executes each operator: wave-instructions a second, with the default checks and with
// all of them. On the cores of this process: `taskset -c 0` gives the figure of one.

#include <benchmark/benchmark.h>

#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/cores.hpp"
#include "runtime/service/device_array.hpp"
#include "runtime/service/fused_moe_trial.hpp"
#include "runtime/service/launch.hpp"
#include "runtime/service/linear_trial.hpp"
#include "runtime/service/moe_sort_trial.hpp"
#include "runtime/service/router_trial.hpp"
#include "tools/bench/service_setup.hpp"

namespace {

using namespace kiln;
using bench::value_or_exit;
using service::DeviceArray;

service::Service& simulated_service() {
    static service::Service& opened = *[] {
        auto settings = value_or_exit(service::read_settings({}, service::process_environment()));
        settings.driver.driver = device::Driver::sim;
        settings.driver.sim_library = KILN_SIM_LIBRARY;
        return value_or_exit(service::Service::open(std::move(settings)))
            .release();  // until the process ends
    }();
    return opened;
}

void check(const Result<void>& done) {
    if (!done) {
        value_or_exit(Result<int>(tl::unexpected(done.error())));
    }
}

// One problem's arrays on the device, for launches of m tokens.
class Launches {
  public:
    Launches(const operators::Operator& op, const operators::Problem& fields, std::int64_t m) : m_(m) {
        const auto problem = value_or_exit(operators::complete(op, fields));
        auto prepared = simulated_service().prepare(0, op, problem);
        if (!prepared) {
            value_or_exit(Result<int>(tl::unexpected(prepared.error().error)));
        }
        plan_ = *std::move(prepared);
        case_ = std::visit([&](const auto& typed) { return service::make_trial_case(typed, m, 1); },
                           plan_->typed());
        check(plan_->device().make_current());
        for (const service::TrialInput& input : case_->weights()) {
            load(input, weights_);
        }
        for (const service::TrialInput& input : case_->inputs(m)) {
            load(input, inputs_);
        }
        for (const service::TrialOutput& output : case_->outputs(m)) {
            outputs_.push_back(allocate(output.bytes));
            check(plan_->device().fill(outputs_.back(), output.before, output.bytes, nullptr));
        }
        if (const std::int64_t bytes = plan_->workspace_bytes(m); bytes != 0) {
            workspace_ = allocate(static_cast<std::size_t>(bytes));
            if (auto ready = plan_->init_workspace(nullptr, workspace_, bytes); !ready) {
                value_or_exit(Result<int>(tl::unexpected(ready.error().error)));
            }
        }
        (void)value_or_exit(plan_->device().take_counts());
    }

    // Wave-instructions of one launch.
    std::uint64_t run() {
        return counted(case_->launch(*plan_, nullptr, m_, {weights_, inputs_, outputs_, workspace_}));
    }
    // Of its first kernel alone: of fused_moe/small_m the first phase. Requires a problem of fused_moe.
    std::uint64_t run_first_kernel() {
        kiln_fused_moe_args args{};
        args.x = inputs_[0];
        args.ldx = static_cast<std::int64_t>(case_->inputs(m_)[0].token_bytes / sizeof(std::uint16_t));
        args.w13 = weights_[0];
        args.w13_scale = weights_[1];
        args.w2 = weights_[2];
        args.w2_scale = weights_[3];
        args.ids = static_cast<const std::int32_t*>(inputs_[1]);
        args.weights = static_cast<const float*>(inputs_[2]);
        args.out = outputs_[0];
        args.invalid_id = static_cast<std::int32_t*>(outputs_[1]);
        args.workspace = workspace_;
        const service::PlanBucket& bucket = *plan_->bucket_for(m_);
        auto kernargs =
            service::packed(std::get<operators::FusedMoeProblem>(plan_->typed()), m_, args, *plan_, bucket);
        const service::LoadedKernel& kernel = bucket.loaded()->kernels.front();
        device::LaunchShape shape = kernel.shape;
        shape.grid.x = kernel.grid_x(m_);
        return counted(plan_->device().launch(kernel.function, shape, nullptr,
                                              reinterpret_cast<std::byte*>(&kernargs) + kernel.kernarg_offset,
                                              kernel.kernarg_bytes));
    }
    device::Device& device() { return plan_->device(); }

  private:
    std::uint64_t counted(int status) {
        if (status != 0) {
            value_or_exit(Result<int>(fail(ErrorCode::launch_failed, Stage::launch, "the launch failed")));
        }
        check(plan_->device().synchronize(nullptr));
        return value_or_exit(plan_->device().take_counts()).instructions;
    }
    void* allocate(std::size_t bytes) {
        arrays_.push_back(value_or_exit(DeviceArray::create(plan_->shared_device(), bytes)));
        return arrays_.back().get();
    }
    void load(const service::TrialInput& input, std::vector<void*>& pointers) {
        const bool whole = input.parts.empty();
        pointers.push_back(allocate(whole ? input.bytes.size() : input.whole_bytes));
        auto* const to = static_cast<std::byte*>(pointers.back());
        if (whole) {
            check(plan_->device().copy_to_device(to, input.bytes, nullptr));
        }
        for (const service::TrialPart& part : input.parts) {
            check(plan_->device().copy_to_device(to + part.offset, part.bytes, nullptr));
        }
    }

    const std::int64_t m_;
    std::shared_ptr<const service::Plan> plan_;
    std::unique_ptr<service::TrialCase> case_;
    std::vector<DeviceArray> arrays_;
    std::vector<void*> weights_, inputs_, outputs_;
    void* workspace_ = nullptr;
};

// Of all threads of this process.
double cpu_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// What of a launch is run.
using Part = std::uint64_t (Launches::*)();

void simulate(benchmark::State& state, const operators::Operator& op, const operators::Problem& problem,
              std::int64_t m, const std::string& checks, Part part) {
    Launches launches(op, problem, m);
    check(launches.device().set_rules({.checks = checks}));
    std::uint64_t instructions = 0;
    const double before = cpu_seconds();
    for (auto _ : state) {
        instructions += (launches.*part)();
    }
    const double spent = cpu_seconds() - before;
    check(launches.device().set_rules({}));
    state.counters["wave_instructions"] =
        benchmark::Counter(static_cast<double>(instructions), benchmark::Counter::kIsRate);
    // What one core does in a second that it has for itself: holds on a busy machine too.
    state.counters["per_core_second"] = static_cast<double>(instructions) / spent;
    state.counters["cores"] = cores_of_this_process();
}

void add(const std::string& name, const operators::Operator& op, const operators::Problem& problem,
         std::int64_t m, Part part = &Launches::run) {
    for (const char* checks : {"uninitialised,freed", "all"}) {
        benchmark::RegisterBenchmark(
            (name + "/checks:" + checks).c_str(),
            [=, &op](benchmark::State& state) { simulate(state, op, problem, m, checks, part); })
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond)
            ->Repetitions(5)
            ->ReportAggregatesOnly();
    }
}

}  // namespace

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
        return 2;
    }
    add("linear/m:16", operators::linear(), {{"n", 4608}, {"k", 4096}}, 16);
    add("router/m:8", operators::router(), {{"hidden", 4096}, {"experts", 512}, {"top_k", 10}}, 8);
    add("moe_sort/mxfp8/m:16", operators::moe_sort(),
        {{"experts", 513}, {"slots", 11}, {"block_m", 32}, {"quant", "mxfp8"}, {"hidden", 4096}}, 16);
    const operators::Problem experts = {
        {"hidden", 4096}, {"intermediate", 256}, {"experts", 513}, {"slots", 11}, {"weights", "mxfp4"}};
    add("fused_moe/mxfp4/m:16", operators::fused_moe(), experts, 16);
    add("fused_moe/mxfp4/phase:1/m:16", operators::fused_moe(), experts, 16, &Launches::run_first_kernel);
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
