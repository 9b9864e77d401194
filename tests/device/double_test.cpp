// The adapter over a driver that has the required entry points and no others.
#include <doctest/doctest.h>

#include <string>

#include "runtime/device/device.hpp"

using namespace kiln;
using namespace kiln::device;

TEST_CASE("TheRequiredEntryPointsSuffice") {
    const auto devices =
        open_devices({.driver = Driver::hip, .hip_library = KILN_TEST_DOUBLE, .sim_library = {}});
    REQUIRE(devices);
    REQUIRE(devices->size() == 1);
    Device& device = *devices->front();
    CHECK(device.info().name == "double");
    CHECK_FALSE(device.info().simulated);
    const auto module = device.load(Bytes(64));
    REQUIRE(module);
    const auto function = (*module)->function("anything");
    REQUIRE(function);
    int argument = 0;
    CHECK(device.launch(*function, {}, nullptr, &argument, sizeof argument) == 0);
    CHECK_FALSE(device.is_capturing(nullptr).value());
    CHECK(device.describe(1) == "HIP error (1)");

    const auto memory = device.allocate(64);
    REQUIRE_FALSE(memory);
    CHECK(memory.error().code == ErrorCode::environment);
    CHECK(memory.error().message.find("lacks hipMalloc") != std::string::npos);
    CHECK(device.take_counts().error().code == ErrorCode::not_found);
}
