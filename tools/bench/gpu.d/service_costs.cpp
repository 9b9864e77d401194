#include "tools/bench/gpu.d/service_costs.hpp"

#include <chrono>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace kiln::bench {

namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void launch_or_throw(const Plan<Linear>& plan, std::int64_t m, const Linear::Args& arguments) {
    const Status status = plan.launch(cuda::Gpu::instance().stream(), m, arguments);
    if (!status) {
        throw std::runtime_error(std::string("launch: ") + status.text());
    }
}

nlohmann::json with_counters(nlohmann::json answer, const Service& service) {
    const kiln_statistics statistics = service.statistics();
    answer["compiles"] = statistics.compiles;
    answer["cache_hits"] = statistics.cache_hits;
    answer["loads"] = statistics.loads;
    return answer;
}

// The launch that an engine without kiln would write.
class BareLaunch {
  public:
    BareLaunch(const Plan<Linear>& plan, std::int64_t m, const Linear::Args& arguments)
        : m_(static_cast<std::int32_t>(m)), arguments_(arguments) {
        const auto graph = cuda::CapturedGraph::of([&] { launch_or_throw(plan, m, arguments); });
        const auto kernels = graph.kernels();
        if (kernels.size() != 1 || kernels.front().function == nullptr) {
            throw std::runtime_error("expected one kernel in the graph of a launch, found " +
                                     std::to_string(kernels.size()) + " nodes");
        }
        kernel_ = kernels.front();
    }

    int operator()(const cuda::Calls& calls, cuda::Stream stream) const {
        struct {
            const void* x;
            const void* w;
            const void* w_scale;
            void* out;
            std::int32_t m, ldx;
        } packed = {arguments_.x,   arguments_.w, arguments_.w_scale,
                    arguments_.out, m_,           static_cast<std::int32_t>(arguments_.ldx)};
        std::size_t bytes = sizeof(packed);
        // CU_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE and _END of cuda.h.
        void* extra[] = {reinterpret_cast<void*>(1), &packed, reinterpret_cast<void*>(2), &bytes, nullptr};
        return calls.cuLaunchKernel(kernel_.function, kernel_.grid[0], kernel_.grid[1], kernel_.grid[2],
                                    kernel_.block[0], kernel_.block[1], kernel_.block[2],
                                    kernel_.shared_bytes, stream, nullptr, extra);
    }

  private:
    cuda::KernelNode kernel_{};
    std::int32_t m_;
    Linear::Args arguments_;
};

}  // namespace

Service open_service() {
    auto service = Service::open({.device = "cuda"});
    if (!service) {
        throw std::runtime_error(service.failure().message);
    }
    return service;
}

Plan<Linear> prepare(const Service& service, const Problem& problem) {
    auto plan = service.prepare(0, Linear{.n = problem.n, .k = problem.k});
    if (!plan) {
        throw std::runtime_error(plan.failure().message);
    }
    return plan;
}

nlohmann::json launch_cost(const Plan<Linear>& plan, const Rotation& rotation, std::int64_t m, int rounds) {
    // So many that the clock costs nothing, and so few that a pair of bursts sees the same machine.
    constexpr int kBurst = 50;
    const cuda::Gpu& gpu = cuda::Gpu::instance();
    const cuda::Calls& calls = gpu.calls();
    const cuda::Stream stream = gpu.stream();
    const Linear::Args arguments = rotation.arguments(0);
    const BareLaunch bare(plan, m, arguments);

    const auto burst = [&](auto&& launch) {
        int failures = 0;
        const auto start = Clock::now();
        for (int i = 0; i < kBurst; ++i) {
            failures += launch();
        }
        const double nanoseconds = milliseconds_since(start) * 1e6 / kBurst;
        gpu.synchronise();
        if (failures != 0) {
            throw std::runtime_error(std::to_string(failures) + " launches failed");
        }
        return nanoseconds;
    };
    const auto of_bare = [&] { return burst([&] { return bare(calls, stream) == 0 ? 0 : 1; }); };
    const auto of_plan = [&] {
        return burst([&] { return plan.launch(stream, m, arguments).ok() ? 0 : 1; });
    };

    for (int i = 0; i < 10; ++i) {  // caches and clocks
        of_bare();
        of_plan();
    }
    std::vector<double> bare_times;
    std::vector<double> plan_times;
    for (int round = 0; round < rounds; ++round) {
        if (round % 2 == 0) {
            bare_times.push_back(of_bare());
            plan_times.push_back(of_plan());
        } else {
            plan_times.push_back(of_plan());
            bare_times.push_back(of_bare());
        }
    }
    return {{"bare_ns", bare_times}, {"plan_ns", plan_times}, {"burst", kBurst}};
}

nlohmann::json first_use(const Problem& problem, std::int64_t m) {
    const cuda::Gpu& gpu = cuda::Gpu::instance();
    const Rotation rotation(problem, m);
    gpu.synchronise();
    const auto start = Clock::now();
    const auto service = open_service();
    const double opened = milliseconds_since(start);
    const auto plan = prepare(service, problem);
    const double prepared = milliseconds_since(start);
    launch_or_throw(plan, m, rotation.arguments(0));
    gpu.synchronise();
    return with_counters(
        {{"open_ms", opened}, {"prepared_ms", prepared}, {"total_ms", milliseconds_since(start)}}, service);
}

nlohmann::json prepare_all(const std::vector<Problem>& problems) {
    cuda::Gpu::instance();
    const auto start = Clock::now();
    const auto service = open_service();
    const double opened = milliseconds_since(start);
    std::vector<Plan<Linear>> plans;
    for (const Problem& problem : problems) {
        plans.push_back(prepare(service, problem));
    }
    return with_counters(
        {{"open_ms", opened}, {"total_ms", milliseconds_since(start)}, {"plans", plans.size()}}, service);
}

}  // namespace kiln::bench
