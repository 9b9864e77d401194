// When the buckets of a lazy plan are obtained and loaded, what a launch answers until then, and what more
// than one mode has in common.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/allocation_counter.hpp"
#include "tests/service/log_lines.hpp"
#include "tests/service/modes_fixture.hpp"

using namespace kiln::service;
using namespace std::chrono_literals;
using kiln::operators::linear;
using kiln::test::DeviceDouble;
using kiln::test::Gate;
using kiln::test::GatedCompiler;
using kiln::test::kForever;
using kiln::test::Modes;
using kiln::test::open;
using kiln::test::small_problem;

TEST_CASE_FIXTURE(Modes, "lazy: each bucket is obtained by its first launch, and no other") {
    const auto plan = prepare(PrepareMode::lazy);
    CHECK(service->statistics().compiles == 0);
    CHECK(device->loads == 0);
    CHECK(plan->max_m() == 16);
    CHECK(plan->bucket_for(5)->kernel_name == "kiln_linear_n16_k128_m8");
    CHECK(plan->ready(5) == KILN_DECLINE_COMPILING);
    CHECK(plan->ready(0) == KILN_OK);
    CHECK(plan->ready(-1) == KILN_DECLINE_M_NEGATIVE);
    CHECK(plan->ready(17) == KILN_DECLINE_M_TOO_LARGE);

    CHECK(launch(*plan, 5) == KILN_OK);
    CHECK(device->launches == 1);
    CHECK(plan->ready(8) == KILN_OK);
    CHECK(plan->ready(4) == KILN_DECLINE_COMPILING);
    CHECK(service->statistics().compiles == 1);
    CHECK(device->loads == 1);
    CHECK(launch(*plan, 8) == KILN_OK);
    CHECK(device->loads == 1);

    CHECK(launch(*plan, 16) == KILN_OK);
    CHECK(service->statistics().compiles == 2);
    // 0 only looks.
    CHECK(plan->wait(0ms).error().decline == KILN_DECLINE_COMPILING);
    CHECK(plan->ready(4) == KILN_DECLINE_COMPILING);
    CHECK(service->statistics().compiles == 2);
    CHECK(plan->wait(kForever));
    CHECK(service->statistics().compiles == 3);
    CHECK(device->loads == 3);
    CHECK(plan->ready(4) == KILN_OK);
    CHECK(plan->wait(0ms));
}

TEST_CASE_FIXTURE(Modes, "lazy: once a bucket is loaded, its launch allocates nothing") {
    const auto plan = prepare(PrepareMode::lazy);
    REQUIRE(launch(*plan, 4) == KILN_OK);
    const auto before = kiln::test::num_allocations();
    kiln_status sum = 0;
    for (int i = 0; i < 100; ++i) {
        sum += launch(*plan, 1 + i % 4) + plan->ready(3);
    }
    CHECK(kiln::test::num_allocations() == before);
    CHECK(sum == 0);
}

TEST_CASE_FIXTURE(Modes, "lazy: threads that need one bucket share one compile and one load") {
    const auto plan = prepare(PrepareMode::lazy);
    gate->close();
    std::vector<std::thread> threads;
    std::atomic<int> failed{0};
    for (int i = 0; i < 6; ++i) {
        threads.emplace_back([&] { failed += launch(*plan, 2) != KILN_OK; });
    }
    gate->wait_for_compiles(1);
    CHECK(plan->ready(2) == KILN_DECLINE_COMPILING);
    gate->open();
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(failed == 0);
    CHECK(device->launches == 6);
    CHECK(device->loads == 1);
    CHECK(service->statistics().compiles == 1);
}

TEST_CASE_FIXTURE(Modes, "lazy: a first use under capture declines and begins nothing") {
    const auto plan = prepare(PrepareMode::lazy);
    device->capturing = true;
    CHECK(launch(*plan, 4) == KILN_DECLINE_CAPTURE);
    CHECK(plan->ready(4) == KILN_DECLINE_COMPILING);
    CHECK(service->statistics().compiles == 0);
    CHECK(device->launches == 0);
    device->capturing = false;
    CHECK(launch(*plan, 4) == KILN_OK);
    device->capturing = true;
    CHECK(launch(*plan, 4) == KILN_OK);
}

TEST_CASE_FIXTURE(Modes, "lazy: a launch that is declined for another reason obtains nothing") {
    const auto plan = prepare(PrepareMode::lazy);
    device->current = 1;
    CHECK(launch(*plan, 4) == KILN_DECLINE_OTHER_DEVICE);
    device->current = 0;
    CHECK(kiln::test::launch_linear(*plan, nullptr, 4, {}) == KILN_DECLINE_NULL_POINTER);
    CHECK(launch(*plan, 0) == KILN_OK);
    CHECK(service->statistics().cache_misses == 0);
    CHECK(device->loads == 0);
}

TEST_CASE_FIXTURE(Modes,
                  "lazy: a miss with KILN_JIT=off fails by name, compiles nothing, and may be put right") {
    overrides.jit = "off";
    reopen();
    const auto plan = prepare(PrepareMode::lazy);
    CHECK(launch(*plan, 4) == -KILN_ERROR_ENVIRONMENT);
    CHECK(plan->ready(4) == -KILN_ERROR_ENVIRONMENT);
    const std::uint64_t misses = service->statistics().cache_misses;
    CHECK(launch(*plan, 4) == -KILN_ERROR_ENVIRONMENT);
    CHECK(service->statistics().cache_misses == misses);  // at once

    const auto failed = plan->wait(kForever);
    REQUIRE(!failed);
    CHECK(failed.error().error.message.find("kiln_linear_n16_k128_m4") != std::string::npos);
    CHECK(failed.error().error.message.find("KILN_JIT=off") != std::string::npos);
    CHECK(service->statistics().compiles == 0);
    CHECK(service->statistics().disabled == 0);

    overrides.jit = "on";
    warm();
    const auto waited = plan->wait(kForever);
    REQUIRE_MESSAGE(waited, waited.error().error.message);
    CHECK(launch(*plan, 4) == KILN_OK);
    CHECK(service->statistics().cache_hits == 3);
    CHECK(service->statistics().compiles == 0);
}

TEST_CASE_FIXTURE(Modes,
                  "one bad bucket fails a blocking prepare whole, and only itself in the other modes") {
    gate->refuse("_m8");
    auto plan = prepare(PrepareMode::background);
    const auto failed = plan->wait(kForever);
    REQUIRE(!failed);
    CHECK(failed.error().status() == -KILN_ERROR_COMPILE_FAILED);
    CHECK(failed.error().error.message.find("kiln_linear_n16_k128_m8") != std::string::npos);
    CHECK(failed.error().error.message.find("refused: _m8") != std::string::npos);
    // An error once; from then on it declines.
    const auto again = plan->wait(kForever);
    REQUIRE(!again);
    CHECK(again.error().decline == KILN_DECLINE_DISABLED);
    CHECK(again.error().error.message.find("refused: _m8") != std::string::npos);
    CHECK(launch(*plan, 4) == KILN_OK);
    CHECK(launch(*plan, 8) == KILN_DECLINE_DISABLED);
    CHECK(plan->ready(8) == KILN_DECLINE_DISABLED);
    CHECK(launch(*plan, 16) == KILN_OK);
    CHECK(service->statistics().disabled == 1);
    CHECK(service->statistics().compile_errors == 1);

    const auto blocking = service->prepare(0, linear(), small_problem());
    REQUIRE(!blocking);
    CHECK(blocking.error().decline == KILN_DECLINE_DISABLED);
    CHECK(service->supports(0, linear(), small_problem()).error().decline == KILN_DECLINE_DISABLED);
    plan = prepare(PrepareMode::lazy);
    CHECK(launch(*plan, 16) == KILN_OK);
    CHECK(launch(*plan, 8) == KILN_DECLINE_DISABLED);
    CHECK(service->statistics().compile_errors == 1);  // at once, from the second time on
}

TEST_CASE_FIXTURE(Modes, "lazy: a refused compile is an error once, then the bucket declines") {
    gate->refuse("_m4");
    const auto plan = prepare(PrepareMode::lazy);
    CHECK(launch(*plan, 4) == -KILN_ERROR_COMPILE_FAILED);
    CHECK(launch(*plan, 4) == KILN_DECLINE_DISABLED);
    CHECK(launch(*plan, 8) == KILN_OK);
}

TEST_CASE_FIXTURE(Modes, "a problem of which every bucket is disabled declines in every mode") {
    gate->refuse("constexpr");
    const auto plan = prepare(PrepareMode::background);
    CHECK(!plan->wait(kForever));
    CHECK(service->statistics().disabled == 3);
    for (const PrepareMode mode : {PrepareMode::blocking, PrepareMode::lazy, PrepareMode::background}) {
        const auto refused = service->prepare(0, linear(), small_problem(), mode);
        REQUIRE(!refused);
        CHECK(refused.error().decline == KILN_DECLINE_DISABLED);
    }
}

TEST_CASE_FIXTURE(Modes,
                  "what can not be built is tried once for all devices, what can not be loaded for each") {
    const auto second = std::make_shared<DeviceDouble>("gfx950:sramecc+:xnack-", 1);
    parts.open_devices = [this, second] {
        return kiln::Result<std::vector<std::shared_ptr<kiln::device::Device>>>({device, second});
    };
    reopen();
    gate->refuse("_m8");
    const auto refused = [&](int ordinal) {
        const auto plan = service->prepare(ordinal, linear(), small_problem());
        return plan ? KILN_OK : plan.error().status();
    };
    CHECK(refused(0) == -KILN_ERROR_COMPILE_FAILED);
    CHECK(refused(1) == KILN_DECLINE_DISABLED);
    CHECK(service->supports(1, linear(), small_problem()).error().decline == KILN_DECLINE_DISABLED);
    CHECK(service->statistics().compile_errors == 1);

    gate = std::make_shared<Gate>();
    parts.make_compiler = [its_gate = gate]() -> kiln::Result<std::unique_ptr<kiln::compile::Compiler>> {
        return std::make_unique<GatedCompiler>(its_gate);
    };
    reopen();
    device->load_error = {kiln::ErrorCode::load_failed, kiln::Stage::load, "no kernel image"};
    CHECK(refused(0) == -KILN_ERROR_LOAD_FAILED);
    CHECK(refused(0) == KILN_DECLINE_DISABLED);
    CHECK(refused(1) == KILN_OK);
}

TEST_CASE_FIXTURE(Modes, "lazy: an earlier failure of the device is an error that disables nothing") {
    const auto plan = prepare(PrepareMode::lazy);
    device->load_error = {kiln::ErrorCode::device_failed, kiln::Stage::load, "a fault of before"};
    CHECK(launch(*plan, 4) == -KILN_ERROR_DEVICE_FAILED);
    device->load_error.reset();
    CHECK(service->statistics().disabled == 0);
    REQUIRE(plan->wait(kForever));
    CHECK(launch(*plan, 4) == KILN_OK);
}

TEST_CASE_FIXTURE(Modes,
                  "statistics and log: the first decline of a kind, each load, each compile, a disable") {
    const auto lines = kiln::test::log_lines(kiln::log::Level::info, [&] {
        gate->refuse("_m8");
        const auto plan = prepare(PrepareMode::lazy);
        CHECK(launch(*plan, 4) == KILN_OK);
        CHECK(launch(*plan, 8) == -KILN_ERROR_COMPILE_FAILED);
        for (int i = 0; i < 5; ++i) {
            CHECK(launch(*plan, 8) == KILN_DECLINE_DISABLED);
            CHECK(launch(*plan, 17) == KILN_DECLINE_M_TOO_LARGE);
        }
        Problem problem = small_problem();
        problem["n"] = std::int64_t{48};
        CHECK(!service->supports(0, linear(), problem));
        CHECK(!service->prepare(0, linear(), problem));
    });
    CHECK(lines.count("compile kernel=kiln_linear_n16_k128_m4") == 1);
    CHECK(lines.count("load kernel=kiln_linear_n16_k128_m4") == 1);
    CHECK(lines.count("disable kernel=kiln_linear_n16_k128_m8") == 1);
    CHECK(lines.count("refused: _m8") == 1);
    CHECK(lines.count("decline problem=\"linear n=16 k=128\" reason=disabled") == 1);
    CHECK(lines.count("decline problem=\"linear n=16 k=128\" reason=m_too_large") == 1);
    CHECK(lines.count("decline problem=\"linear n=48 k=128\" reason=shape") == 1);
    const Statistics statistics = service->statistics();
    CHECK(statistics.declines == 12);
    CHECK(statistics.disabled == 1);
    CHECK(statistics.loads == 1);
}

TEST_CASE_FIXTURE(Modes, "statistics: what threads count adds up") {
    warm();
    constexpr int kThreads = 4, kRounds = 5;
    std::vector<std::thread> threads;
    std::atomic<int> failed{0};
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] {
            for (int round = 0; round < kRounds; ++round) {
                const auto mode =
                    std::array{PrepareMode::blocking, PrepareMode::lazy,
                               PrepareMode::background}[static_cast<std::size_t>(i + round) % 3];
                const auto plan = service->prepare(0, linear(), small_problem(), mode);
                failed += !plan || !(*plan)->wait(kForever) || launch(**plan, 1) != KILN_OK ||
                          launch(**plan, 20) != KILN_DECLINE_M_TOO_LARGE;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(failed == 0);
    const Statistics statistics = service->statistics();
    // Plans that are there at the same time share what is loaded.
    CHECK(statistics.loads >= 3);
    CHECK(statistics.loads <= kThreads * kRounds * 3);
    CHECK(statistics.cache_hits + statistics.memory_hits == kThreads * kRounds * 3);
    CHECK(statistics.declines == kThreads * kRounds);
    CHECK(statistics.compiles == 0);
    CHECK(device->launches == kThreads * kRounds);
}

TEST_CASE_FIXTURE(Modes, "warm: a stop keeps what is done, ends what is under way, begins nothing more") {
    std::vector<kiln::Error> errors;
    WarmFilter filter;
    filter.problem = small_problem();
    const auto wanted = service->matching(filter, errors);
    REQUIRE(wanted.size() == 3);
    for (const WarmCheck& check : service->check_warm(wanted)) {
        CHECK(!check.cached);
    }
    std::atomic<bool> stop{false};
    std::promise<void> first_done;
    WarmOptions options;
    options.jobs = 1;
    options.stop = &stop;
    options.progress = [&](std::size_t done, std::size_t total, const WarmItem& item) {
        CHECK(done == 1);
        CHECK(total == 3);
        CHECK(!item.error);
        gate->close();
        first_done.set_value();
    };
    std::thread stopper([&] {
        first_done.get_future().wait();
        gate->wait_for_compiles(1);  // the second
        stop = true;
    });
    const WarmSummary summary = service->warm(wanted, options);
    stopper.join();
    CHECK(summary.compiled == 1);
    CHECK(summary.skipped == 2);
    CHECK(summary.failed == 0);
    const auto checks = open(overrides)->check_warm(wanted);
    CHECK(checks[0].cached);
    CHECK(!checks[1].cached);
    CHECK(!checks[2].cached);
}
