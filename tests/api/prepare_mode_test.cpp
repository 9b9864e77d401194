// Lazy and background preparation, and the switches of an operator, as a program sees them through kiln.hpp.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <chrono>
#include <string>

#include "tests/allocation_counter.hpp"
#include "tests/api/small_case.hpp"

using kiln::PrepareMode;
using kiln::test::Folder;
using kiln::test::small_problem;
using kiln::test::small_row;
using kiln::test::small_table;
using kiln::test::SmallCase;

namespace {

struct Prepared {
    Folder folder;
    std::string cache = (folder.path() / "cache").string();
    std::string shapes = folder.write("mine.json", small_table({small_row(16, 1)}));

    kiln::Service open(const char* jit = nullptr) const {
        kiln::test::shared_cache();
        auto service = kiln::Service::open({.cache_dir = cache.c_str(),
                                            .shapes_path = shapes.c_str(),
                                            .device = "sim",
                                            .jit = jit,
                                            .log = "off"});
        REQUIRE_MESSAGE(service, service.failure().message);
        return service;
    }
};

// An environment variable for as long as this lives.
class Variable {
  public:
    Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
    ~Variable() { unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

  private:
    const char* name_;
};

}  // namespace

TEST_CASE_FIXTURE(Prepared, "modes: every mode ends in the same results") {
    const SmallCase arrays(9, 16);
    for (const PrepareMode mode : {PrepareMode::background, PrepareMode::lazy, PrepareMode::blocking}) {
        const auto service = open();
        const auto plan = service.prepare(0, small_problem(16), mode);
        REQUIRE_MESSAGE(plan, plan.failure().message);
        CHECK(plan.max_m() == 16);
        CHECK(plan.kernel_name(5) == std::string("kiln_linear_n16_k256_m16"));
        if (mode == PrepareMode::background) {
            REQUIRE(plan.wait(std::chrono::hours(1)));
        }
        CHECK(plan.ready(9).ok() == (mode != PrepareMode::lazy));
        arrays.clear();
        REQUIRE(plan.launch(nullptr, 9, arrays.args()));
        CHECK(arrays.is_right());
        CHECK(plan.ready(9).ok());
        CHECK(plan.ready(0).ok());
        CHECK(plan.ready(17).decline() == KILN_DECLINE_M_TOO_LARGE);
        CHECK(plan.ready(-1).decline() == KILN_DECLINE_M_NEGATIVE);
        const auto before = kiln::test::num_allocations();
        const bool ready = plan.ready(9).ok();
        CHECK(kiln::test::num_allocations() == before);
        CHECK(ready);
        CHECK(plan.wait());
        CHECK(service.statistics().loads == 2);
    }
}

TEST_CASE_FIXTURE(Prepared,
                  "modes: a plan that is being prepared outlives its service, and is dropped at will") {
    auto plan = open().prepare(0, small_problem(16), PrepareMode::background);
    REQUIRE(plan.wait());
    const SmallCase arrays(4, 16);
    CHECK(plan.launch(nullptr, 4, arrays.args()));
    CHECK(arrays.is_right());
    for (int i = 0; i < 5; ++i) {
        plan = kiln::Plan<kiln::Linear>(kiln::Failure{});
        std::filesystem::remove_all(cache);
        CHECK(open().prepare(0, small_problem(16), PrepareMode::background));  // dropped at once
        plan = open().prepare(0, small_problem(16), PrepareMode::lazy);
        const kiln::Status waited = plan.wait(std::chrono::milliseconds(i));
        CHECK((waited.ok() || waited.decline() == KILN_DECLINE_COMPILING));
    }
}

TEST_CASE_FIXTURE(Prepared, "modes: with KILN_JIT=off a miss is named, by prepare or by wait") {
    const auto service = open("off");
    const auto blocking = service.prepare(0, small_problem(16));
    REQUIRE(!blocking);
    CHECK(blocking.failure().status.error_code() == KILN_ERROR_ENVIRONMENT);
    CHECK(blocking.failure().message.find("KILN_JIT=off") != std::string::npos);
    const auto plan = service.prepare(0, small_problem(16), PrepareMode::background);
    REQUIRE(plan);
    kiln::Failure why;
    CHECK(plan.wait(std::chrono::milliseconds(-1), &why).error_code() == KILN_ERROR_ENVIRONMENT);
    CHECK(why.message.find("kiln_linear_n16_k256_m4") != std::string::npos);
    CHECK(plan.ready(4).error_code() == KILN_ERROR_ENVIRONMENT);
    CHECK(service.statistics().compiles == 0);
    // Warmed by somebody else: the next wait finds it.
    REQUIRE(open().prepare(0, small_problem(16)));
    CHECK(plan.wait());
    CHECK(plan.ready(4).ok());
    CHECK(service.statistics().compiles == 0);
    CHECK(service.statistics().cache_hits == 2);
}

TEST_CASE_FIXTURE(Prepared, "modes: options that make no sense are invalid arguments") {
    const auto service = open();
    const kiln_linear problem = small_problem(16).c_problem();
    kiln_plan* plan = nullptr;
    kiln_prepare_options options = KILN_PREPARE_OPTIONS_INIT;
    const auto prepare = [&] {
        const kiln_status status =
            kiln_linear_prepare(service.handle(), 0, &problem, &options, &plan, nullptr);
        kiln_plan_release(plan);
        plan = nullptr;
        return status;
    };
    options.mode = 3;
    CHECK(prepare() == -KILN_ERROR_INVALID_ARGUMENT);
    options.mode = -1;
    CHECK(prepare() == -KILN_ERROR_INVALID_ARGUMENT);
    options.mode = KILN_PREPARE_LAZY;
    options.reserved = 1;
    CHECK(prepare() == -KILN_ERROR_INVALID_ARGUMENT);
    options.reserved = 0;
    options.struct_size = 0;
    CHECK(prepare() == -KILN_ERROR_INVALID_ARGUMENT);
    options.struct_size = sizeof(options);
    CHECK(prepare() == KILN_OK);
    CHECK(kiln_plan_ready(nullptr, 1) == -KILN_ERROR_INVALID_ARGUMENT);
    CHECK(kiln_plan_wait(nullptr, 0, nullptr) == -KILN_ERROR_INVALID_ARGUMENT);
    CHECK(kiln_service_reload(nullptr, nullptr) == -KILN_ERROR_INVALID_ARGUMENT);
    const kiln::Plan<kiln::Linear> none(kiln::Failure{kiln::Status(KILN_DECLINE_SHAPE), 0, "why"});
    kiln::Failure why;
    CHECK(none.ready(1).decline() == KILN_DECLINE_SHAPE);
    CHECK(none.wait(std::chrono::milliseconds(0), &why).decline() == KILN_DECLINE_SHAPE);
    CHECK(why.message == "why");
}

TEST_CASE_FIXTURE(Prepared,
                  "switches: KILN_DISABLE takes out an operator or a template, as the configuration does") {
    for (const char* name : {"linear", "linear/small_m"}) {
        const Variable disable("KILN_DISABLE", name);
        const auto service = open();
        for (const PrepareMode mode : {PrepareMode::blocking, PrepareMode::lazy, PrepareMode::background}) {
            const auto plan = service.prepare(0, small_problem(16), mode);
            REQUIRE(!plan);
            CHECK(plan.failure().status.decline() == KILN_DECLINE_SWITCHED_OFF);
            CHECK(plan.failure().message.find(name) != std::string::npos);
        }
        CHECK(service.supports(0, small_problem(16)).decline() == KILN_DECLINE_SWITCHED_OFF);
        CHECK(service.statistics().declines == 4);
        CHECK(service.statistics().compiles == 0);
        // The configuration goes before the environment.
        CHECK(kiln::Service::open({.shapes_path = shapes.c_str(), .disable = "", .log = "off"})
                  .supports(KILN_NO_DEVICE, small_problem(16)));
    }
}

TEST_CASE_FIXTURE(Prepared, "supports compiles, loads and looks up nothing, however often it is asked") {
    const auto service = open();
    for (int i = 0; i < 3; ++i) {
        CHECK(service.supports(0, small_problem(16)));
        CHECK(service.supports(KILN_NO_DEVICE, small_problem(16)));
        CHECK(service.supports(0, small_problem(48)).declined());
    }
    const kiln_statistics statistics = service.statistics();
    CHECK(statistics.compiles == 0);
    CHECK(statistics.cache_hits + statistics.cache_misses + statistics.memory_hits == 0);
    CHECK(statistics.loads == 0);
    CHECK(statistics.declines == 3);
}
