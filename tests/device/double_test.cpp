// The adapter over a driver that has the required entry points and no others: HIP's, or CUDA's.
#include <doctest/doctest.h>

#include <string>
#include <thread>

#include "runtime/device/device.hpp"
#include "tests/allocation_counter.hpp"
#include "tests/device/under_test.hpp"

using namespace kiln;
using namespace kiln::device;
using kiln::test::kCuda;

TEST_CASE("TheRequiredEntryPointsSuffice") {
    const auto devices = kiln::test::open_driver(kCuda ? KILN_TEST_CUDA_DOUBLE : KILN_TEST_DOUBLE);
    REQUIRE(devices.size() == 1);
    Device& device = *devices.front();
    CHECK(device.info().name == "double");
    CHECK(device.info().target == (kCuda ? "sm_90a" : "gfx950:sramecc+:xnack-"));
    CHECK_FALSE(device.info().simulated);
    const auto module = device.load(Bytes(64));
    REQUIRE(module);
    const auto function = (*module)->function("anything");
    REQUIRE(function);
    int argument = 0;
    CHECK(device.launch(*function, {}, nullptr, &argument, sizeof argument) == 0);
    CHECK_FALSE(device.is_capturing(nullptr).value());
    CHECK(device.describe(1) == (kCuda ? "CUDA error (1)" : "HIP error (1)"));

    const auto memory = device.allocate(64);
    REQUIRE_FALSE(memory);
    CHECK(memory.error().code == ErrorCode::environment);
    CHECK(memory.error().message.find(kCuda ? "lacks cuMemAlloc_v2" : "lacks hipMalloc") !=
          std::string::npos);
    CHECK(device.take_counts().error().code == ErrorCode::not_found);
}

TEST_CASE("ALaunchAllocatesNothing") {
    const auto devices = kiln::test::open_driver(kCuda ? KILN_TEST_CUDA_DOUBLE : KILN_TEST_DOUBLE);
    Device& device = *devices.front();
    const auto module = device.load(Bytes(64));
    REQUIRE(module);
    const auto function = (*module)->function("anything");
    REQUIRE(function);
    int argument = 0;
    int error = -1, ordinal = -1;
    const auto launch = [&] {
        ordinal = device.current_ordinal();
        error = device.launch(*function, {}, nullptr, &argument, sizeof argument);
    };
    std::uint64_t allocations = 1;
    const auto measure = [&] {
        const auto before = kiln::test::num_allocations();
        launch();
        allocations = kiln::test::num_allocations() - before;
    };
    // Once with the device current, once from a thread that has used none.
    REQUIRE(device.make_current());
    measure();
    CHECK(allocations == 0);
    CHECK(error == 0);
    CHECK(ordinal == 0);
    std::thread(measure).join();
    CHECK(allocations == 0);
    CHECK(error == 0);
    CHECK(ordinal == 0);
}
