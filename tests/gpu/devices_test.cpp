// Two GPUs in one process.
#include <doctest/doctest.h>

#include "tests/api/small_case.hpp"

using namespace kiln::test;

namespace {

bool is_alone() {
    if (engine::num_devices() < 2) {
        MESSAGE("skipped: one CUDA device, two are wanted");
        return true;
    }
    return false;
}

struct Both {
    Folder folder;
    std::string shapes = folder.write("mine.json", small_table({small_row(16, 1)}));
    kiln::Service service = [this] {
        shared_cache();
        return kiln::Service::open({.shapes_path = shapes.c_str(), .device = engine::device(), .log = "off"});
    }();

    ~Both() { engine::set_device(0); }
};

}  // namespace

TEST_CASE_FIXTURE(Both,
                  "devices: each has plans of its own, with the same results, and prepare switches none") {
    if (is_alone()) {
        return;
    }
    std::int32_t count = 0;
    REQUIRE(service.device_count(count));
    CHECK(count == engine::num_devices());
    std::vector<std::uint16_t> results[2];
    for (const int ordinal : {0, 1}) {
        engine::set_device(1 - ordinal);
        const auto plan = service.prepare(ordinal, small_problem(16));
        REQUIRE_MESSAGE(plan, plan.failure().message);
        CHECK(plan.device() == ordinal);
        CHECK(engine::current_device() == 1 - ordinal);
        engine::set_device(ordinal);
        const SmallCase arrays(16, 16);
        REQUIRE(plan.launch(nullptr, 16, arrays.args()));
        REQUIRE(engine::synchronize() == 0);
        CHECK(arrays.is_right());
        results[ordinal] = arrays.read();
    }
    CHECK(results[0] == results[1]);
    CHECK(service.statistics().compiles <= 2);  // one code object for both
    CHECK(service.statistics().loads == 4);
}

TEST_CASE_FIXTURE(Both, "devices: a plan of the other device is refused, and nothing is disabled") {
    if (is_alone()) {
        return;
    }
    for (const int ordinal : {0, 1}) {
        engine::set_device(ordinal);
        const SmallCase arrays(4, 16);
        const auto plan = service.prepare(ordinal, small_problem(16));
        REQUIRE_MESSAGE(plan, plan.failure().message);
        engine::set_device(1 - ordinal);
        CHECK(plan.launch(nullptr, 4, arrays.args()).decline() == KILN_DECLINE_OTHER_DEVICE);
        CHECK(engine::current_device() == 1 - ordinal);
        engine::set_device(ordinal);
        REQUIRE(plan.launch(nullptr, 4, arrays.args()));
        REQUIRE(engine::synchronize() == 0);
        CHECK(arrays.is_right());
    }
    CHECK(service.statistics().disabled == 0);
}
