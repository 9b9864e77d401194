// What a call of kiln leaves behind in the driver: nothing. And what it makes of what it finds there.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "tests/api/simulator.hpp"
#include "tests/api/small_case.hpp"

using kiln::PrepareMode;
using kiln::test::Driver;
using kiln::test::Folder;
using kiln::test::small_problem;
using kiln::test::small_row;
using kiln::test::small_table;
using kiln::test::SmallCase;

namespace {

constexpr PrepareMode kModes[] = {PrepareMode::blocking, PrepareMode::lazy, PrepareMode::background};

struct Driven {
    Folder folder;
    Driver driver;
    std::string shapes = folder.write("mine.json", small_table({small_row(16, 1), small_row(32, 1)}));

    ~Driven() { driver.call("hipSetDevice", 0); }

    kiln::Service open(kiln::Config config = {}) const {
        kiln::test::shared_cache();
        config.shapes_path = shapes.c_str();
        config.device = "sim";
        config.log = "off";
        auto service = kiln::Service::open(config);
        REQUIRE_MESSAGE(service, service.failure().message);
        return service;
    }
    [[nodiscard]] int current_device() const {
        int ordinal = -1;
        driver.call("hipGetDevice", &ordinal);
        return ordinal;
    }
    [[nodiscard]] int last_error() const { return driver.call("hipPeekAtLastError"); }
};

}  // namespace

TEST_CASE_FIXTURE(Driven, "prepare: the calling thread's device is what it was, however it ends") {
    REQUIRE(driver.call("hipSetDevice", 1) == 0);
    const auto service = open();
    for (const PrepareMode mode : kModes) {
        const auto plan = service.prepare(0, small_problem(16), mode);
        REQUIRE(plan);
        CHECK(plan.wait());
        CHECK(plan.device() == 0);
        CHECK(current_device() == 1);
        CHECK(service.prepare(0, small_problem(48), mode).failure().status.declined());
        CHECK(service.prepare(77, small_problem(16), mode).failure().status.failed());
        CHECK(current_device() == 1);
        // A launch refuses another device's plan, and switches nothing.
        const SmallCase arrays(4, 16);
        CHECK(plan.launch(nullptr, 4, arrays.args()).decline() == KILN_DECLINE_OTHER_DEVICE);
        CHECK(current_device() == 1);
    }
    const std::string kernels = folder.path().string();
    folder.write("linear/small_m.gfx950.hip", "this is no C++;\n");
    const auto broken = open({.kernel_path = kernels.c_str()});
    CHECK(broken.prepare(0, small_problem(16)).failure().status.failed());
    CHECK(current_device() == 1);
    folder.write("linear/small_m.gfx950.hip",
                 "#include \"constants.h\"\nextern \"C\" __global__ void KILN_KERNEL_NAME() {}\n");
    const auto other_abi = open({.kernel_path = kernels.c_str()});
    const auto refused = other_abi.prepare(0, small_problem(16));
    CHECK(refused.failure().status.error_code() == KILN_ERROR_LOAD_FAILED);
    CHECK_MESSAGE(refused.failure().message.find("arguments") != std::string::npos,
                  refused.failure().message);
    CHECK(current_device() == 1);
    CHECK(last_error() == 0);
}

TEST_CASE_FIXTURE(Driven, "last error: none of kiln's is left behind, and the program's own stays") {
    const auto service = open();
    const SmallCase arrays(4, 16);
    for (const int before : {0, 1}) {
        CAPTURE(before);
        const auto plan = service.prepare(0, small_problem(16), PrepareMode::lazy);
        REQUIRE(plan);
        if (before != 0) {
            // hipErrorInvalidValue: no place for the pointer.
            CHECK(driver.call("hipMalloc", static_cast<void**>(nullptr), std::size_t{64}) == before);
        }
        CHECK(service.supports(0, small_problem(16)));
        CHECK(last_error() == before);
        CHECK(plan.launch(nullptr, 4, arrays.args()));
        CHECK(last_error() == before);
        CHECK(plan.wait());
        CHECK(plan.launch(nullptr, 17, arrays.args()).declined());
        CHECK(plan.launch(nullptr, 4, {}).declined());
        CHECK(!service.prepare(0, small_problem(48)));
        CHECK(!service.prepare(77, small_problem(16)));
        CHECK(service.prepare(1, small_problem(16)));
        CHECK(service.reload());
        CHECK(last_error() == before);
        CHECK(driver.call("hipGetLastError") == before);
    }
}

TEST_CASE_FIXTURE(Driven, "an earlier asynchronous error is returned as such, and disables nothing") {
    const auto service = open();
    const auto plan = service.prepare(0, small_problem(16));
    // Of a problem of its own: what the first plan has loaded needs no driver a second time.
    const auto lazy = service.prepare(0, small_problem(32), PrepareMode::lazy);
    REQUIRE(plan);
    REQUIRE(lazy);
    const SmallCase arrays(4, 16);
    const SmallCase lazy_arrays(4, 32);
    // The engine's own fault: what it launches reads memory that it has freed.
    void* freed = nullptr;
    REQUIRE(driver.call("hipMalloc", &freed, std::size_t{1 << 20}) == 0);
    REQUIRE(driver.call("hipFree", freed) == 0);
    auto wild = arrays.args();
    wild.x = freed;
    REQUIRE(plan.launch(nullptr, 4, wild));
    CHECK(driver.call("hipDeviceSynchronize") != 0);
    driver.call("hipGetLastError");

    CHECK(plan.launch(nullptr, 4, arrays.args()).error_code() == KILN_ERROR_DEVICE_FAILED);
    CHECK(last_error() == 0);
    CHECK(lazy.launch(nullptr, 4, lazy_arrays.args()).error_code() == KILN_ERROR_DEVICE_FAILED);
    CHECK(last_error() == 0);
    kiln::Failure why;
    CHECK(lazy.wait(std::chrono::milliseconds(-1), &why).error_code() == KILN_ERROR_DEVICE_FAILED);
    CHECK_MESSAGE(why.message.find("kiln_linear_n32") != std::string::npos, why.message);
    CHECK(service.prepare(0, small_problem(32)).failure().status.error_code() == KILN_ERROR_DEVICE_FAILED);
    CHECK(last_error() == 0);
    CHECK(service.statistics().disabled == 0);
    CHECK(service.supports(0, small_problem(16)));

    REQUIRE(driver.call("hipDeviceReset") == 0);
    CHECK(plan.launch(nullptr, 4, arrays.args()));
    CHECK(lazy.wait());
    CHECK(lazy.launch(nullptr, 4, lazy_arrays.args()));
    CHECK(arrays.is_right());
    CHECK(lazy_arrays.is_right());
}
