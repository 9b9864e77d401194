// kiln.hpp end to end, as an engine would use it, beside internal headers in the same file: the names must
// not clash.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "kiln/kiln.hpp"
#include "runtime/operators/linear_reference.hpp"
#include "tests/allocation_counter.hpp"
#include "tests/api/simulator.hpp"

using kiln::test::DeviceVector;
using kiln::test::Driver;

namespace {

constexpr std::uint64_t kSeed = 4711;

kiln::Service open_simulator() {
    kiln::test::shared_cache();
    return kiln::Service::open({.device = "sim"});
}

// The arrays of one case on device 0, and what must come out.
struct Case {
    explicit Case(std::int64_t m, std::int64_t n, std::int64_t k)
        : host(kiln::operators::make_linear_case(m, n, k, kSeed)),
          x(host.x),
          w(host.w),
          w_scale(host.w_scale),
          out(std::vector<std::uint16_t>(static_cast<std::size_t>(m * n), 0xffff)) {}

    [[nodiscard]] kiln::Linear::Args args() const {
        return {.x = x.get(), .ldx = host.ldx, .w = w.get(), .w_scale = w_scale.get(), .out = out.get()};
    }
    [[nodiscard]] kiln::operators::LinearComparison compare(std::int64_t m) const {
        return kiln::operators::compare_linear(out.read(), kiln::operators::linear_reference(host), m,
                                               host.n);
    }

    kiln::operators::LinearArrays host;
    DeviceVector<std::uint16_t> x;
    DeviceVector<std::uint8_t> w;
    DeviceVector<float> w_scale;
    DeviceVector<std::uint16_t> out;
};

}  // namespace

TEST_CASE("the example of the header computes what it says") {
    auto service = open_simulator();
    REQUIRE_MESSAGE(service, service.failure().message);
    auto plan = service.prepare(0, kiln::Linear{.n = 4096, .k = 1024});
    REQUIRE_MESSAGE(plan, plan.failure().message);
    INFO("seed ", kSeed);
    const Case example(32, 4096, 1024);
    for (const std::int64_t m : {1, 5, 32}) {
        const kiln::Status status = plan.launch(nullptr, m,
                                                {.x = example.x.get(),
                                                 .ldx = example.host.ldx,
                                                 .w = example.w.get(),
                                                 .w_scale = example.w_scale.get(),
                                                 .out = example.out.get()});
        REQUIRE_MESSAGE(status, status.text());
        CHECK(example.compare(m).passed());
    }
    CHECK(plan.max_m() == 32);
    CHECK(plan.device() == 0);
    CHECK(plan.kernel_name(3) == std::string("kiln_linear_n4096_k1024_m4"));
}

TEST_CASE("plans are cheap to copy, outlive their service, and launch from many threads") {
    auto service = open_simulator();
    auto plan = service.prepare(0, kiln::Linear{.n = 4096, .k = 1024});
    REQUIRE_MESSAGE(plan, plan.failure().message);
    service = kiln::Service(kiln::Failure{});
    CHECK_FALSE(service);
    auto copy = plan;
    plan = kiln::Plan<kiln::Linear>(kiln::Failure{});
    const Case one(2, 4096, 1024), two(2, 4096, 1024);
    std::atomic<int> failed{0};
    std::thread first([&] { failed += !copy.launch(nullptr, 2, one.args()); });
    std::thread second([&] { failed += !copy.launch(nullptr, 2, two.args()); });
    first.join();
    second.join();
    CHECK(failed == 0);
    CHECK(one.out.read() == two.out.read());
    CHECK(one.compare(2).passed());
}

TEST_CASE("a captured launch replays what the eager launch computed") {
    const auto plan = open_simulator().prepare(0, kiln::Linear{.n = 4096, .k = 1024});
    REQUIRE_MESSAGE(plan, plan.failure().message);
    const Driver driver;
    const Case eager(9, 4096, 1024), replayed(9, 4096, 1024);
    void *stream = nullptr, *graph = nullptr, *executable = nullptr;
    REQUIRE(driver.call("hipStreamCreate", &stream) == 0);
    REQUIRE(plan.launch(stream, 9, eager.args()));
    REQUIRE(driver.call("hipStreamBeginCapture", stream, 0) == 0);
    REQUIRE(plan.launch(stream, 9, replayed.args()));
    REQUIRE(driver.call("hipStreamEndCapture", stream, &graph) == 0);
    REQUIRE(driver.call("hipGraphInstantiate", &executable, graph, static_cast<void*>(nullptr),
                        static_cast<char*>(nullptr), std::size_t{0}) == 0);
    REQUIRE(driver.call("hipGraphLaunch", executable, stream) == 0);
    REQUIRE(driver.call("hipStreamSynchronize", stream) == 0);
    CHECK(replayed.out.read() == eager.out.read());
    driver.call("hipGraphExecDestroy", executable);
    driver.call("hipGraphDestroy", graph);
    driver.call("hipStreamDestroy", stream);
}

TEST_CASE("statistics: the first service compiles, the second is served from the cache") {
    const kiln::test::Folder folder;
    const std::string cache = folder.path().string();
    const auto prepare = [&] {
        const auto service = kiln::Service::open({.cache_dir = cache.c_str(), .device = "sim"});
        const auto plan = service.prepare(0, kiln::Linear{.n = 4096, .k = 1024});
        REQUIRE_MESSAGE(plan, plan.failure().message);
        return service.statistics();
    };
    const kiln_statistics cold = prepare();
    CHECK(cold.compiles == 4);
    CHECK(cold.cache_misses == 4);
    CHECK(cold.cache_hits == 0);
    CHECK(cold.compile_seconds > 0);
    const kiln_statistics warm = prepare();
    CHECK(warm.compiles == 0);
    CHECK(warm.cache_hits == 4);
    CHECK(warm.loads == 4);
}

TEST_CASE("declining a launch allocates nothing") {
    const auto plan = open_simulator().prepare(0, kiln::Linear{.n = 4096, .k = 1024});
    REQUIRE_MESSAGE(plan, plan.failure().message);
    const auto before = kiln::test::num_allocations();
    bool as_expected = true;
    for (int i = 0; i < 100; ++i) {
        as_expected &= plan.launch(nullptr, 0, {}).ok();
        as_expected &= plan.launch(nullptr, 3, {}).decline() == KILN_DECLINE_NULL_POINTER;
    }
    CHECK(kiln::test::num_allocations() == before);
    CHECK(as_expected);
}

TEST_CASE("devices are listed as the driver numbers them") {
    const auto service = open_simulator();
    std::int32_t count = 0;
    REQUIRE(service.device_count(count));
    CHECK(count >= 2);
    kiln_device_info info{};
    REQUIRE(service.device_info(1, info));
    CHECK(info.simulated == 1);
    CHECK(std::string(info.target).starts_with("gfx950"));
    CHECK(service.device_info(count, info).error_code() == KILN_ERROR_NOT_FOUND);
}
