// When the buckets of a plan are obtained and loaded in the background, or at a wait, and what a launch
// answers until then.
#include <doctest/doctest.h>

#include <chrono>

#include "tests/allocation_counter.hpp"
#include "tests/service/modes_fixture.hpp"

using namespace kiln::service;
using namespace std::chrono_literals;
using kiln::test::Gate;
using kiln::test::GatedCompiler;
using kiln::test::kForever;
using kiln::test::Modes;
using kiln::test::open;

TEST_CASE_FIXTURE(Modes,
                  "background: prepare returns at once, launches decline until their bucket is ready") {
    gate->close();
    const auto plan = prepare(PrepareMode::background);
    CHECK(launch(*plan, 4) == KILN_DECLINE_COMPILING);
    CHECK(plan->ready(4) == KILN_DECLINE_COMPILING);
    CHECK(plan->wait(0ms).error().decline == KILN_DECLINE_COMPILING);
    const auto waited = plan->wait(20ms);
    REQUIRE(!waited);
    CHECK(waited.error().decline == KILN_DECLINE_COMPILING);
    CHECK(waited.error().error.message.find("3 of 3") != std::string::npos);
    CHECK(device->launches == 0);
    gate->open();
    REQUIRE(plan->wait(kForever));
    for (const int m : {4, 8, 16}) {
        CHECK(plan->ready(m) == KILN_OK);
        CHECK(launch(*plan, m) == KILN_OK);
    }
    CHECK(service->statistics().compiles == 3);
    CHECK(device->loads == 3);
}

TEST_CASE_FIXTURE(Modes, "background: declining allocates nothing") {
    overrides.workers = 1;
    reopen();
    gate->close();
    const auto plan = prepare(PrepareMode::background);
    gate->wait_for_compiles(1);  // all that the one worker does
    const auto before = kiln::test::num_allocations();
    kiln_status sum = 0;
    for (int i = 0; i < 100; ++i) {
        sum += launch(*plan, 4);
    }
    CHECK(kiln::test::num_allocations() == before);
    CHECK(sum == 100 * KILN_DECLINE_COMPILING);
    gate->open();
}

TEST_CASE_FIXTURE(Modes, "background: no more compile at once than there are workers") {
    for (const unsigned workers : {1u, 2u}) {
        std::filesystem::remove_all(scratch.cache());
        gate = std::make_shared<Gate>();
        parts.make_compiler = [its_gate = gate]() -> kiln::Result<std::unique_ptr<kiln::compile::Compiler>> {
            return std::make_unique<GatedCompiler>(its_gate);
        };
        overrides.workers = workers;
        reopen();
        gate->close();
        const auto plan = prepare(PrepareMode::background);
        gate->wait_for_compiles(workers);
        gate->open();
        REQUIRE(plan->wait(kForever));
        CHECK(gate->most_at_once() == workers);
    }
}

TEST_CASE_FIXTURE(Modes, "background: a warm cache needs no compiler's time") {
    warm();
    gate->close();
    const auto plan = prepare(PrepareMode::background);
    REQUIRE(plan->wait(kForever));
    CHECK(service->statistics().cache_hits == 3);
    CHECK(service->statistics().compiles == 0);
}

TEST_CASE_FIXTURE(Modes, "background: a plan goes on without its service") {
    gate->close();
    const auto plan = prepare(PrepareMode::background);
    service.reset();
    CHECK(launch(*plan, 4) == KILN_DECLINE_COMPILING);
    gate->open();
    REQUIRE(plan->wait(kForever));
    CHECK(launch(*plan, 16) == KILN_OK);
}

TEST_CASE_FIXTURE(Modes, "background: a plan that is released ends nothing of its service") {
    overrides.workers = 1;
    reopen();
    gate->close();
    auto plan = prepare(PrepareMode::background);
    gate->wait_for_compiles(1);
    plan.reset();
    gate->open();
    // The compile under way is finished and kept; those that were not begun are not.
    plan = prepare(PrepareMode::background);
    REQUIRE(plan->wait(kForever));
    CHECK(service->statistics().compiles == 3);
}

TEST_CASE_FIXTURE(Modes, "background: the last release ends the compile under way") {
    for (const bool service_first : {true, false}) {
        gate = std::make_shared<Gate>();
        parts.make_compiler = [its_gate = gate]() -> kiln::Result<std::unique_ptr<kiln::compile::Compiler>> {
            return std::make_unique<GatedCompiler>(its_gate);
        };
        reopen();
        gate->close();  // and stays so: a release that waited for the compile would never return
        auto plan = prepare(PrepareMode::background);
        gate->wait_for_compiles(1);
        if (service_first) {
            service.reset();
            plan.reset();
        } else {
            plan.reset();
            service.reset();
        }
        CHECK(device->loads == 0);
    }
}
