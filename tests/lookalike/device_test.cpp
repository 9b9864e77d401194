#include <cstring>
#include <string>
#include <thread>

#include "tests/lookalike/support.hpp"

using namespace kiln::test;

TEST_CASE("TwoDevicesByDefault") {
    int count = 0;
    CHECK(hipInit(0) == kSuccess);
    CHECK(hipGetDeviceCount(&count) == kSuccess);
    CHECK(count == 2);
    int device = -1;
    CHECK(hipDeviceGet(&device, 1) == kSuccess);
    CHECK(device == 1);
    CHECK(hipDeviceGet(&device, 2) == kInvalidDevice);
    int version = 0;
    CHECK(hipRuntimeGetVersion(&version) == kSuccess);
    CHECK(version / 10'000'000 == 7);
}

TEST_CASE("PropertiesAreWhereHipHasThem") {
    // Offsets of hipDeviceProp_tR0600, from a program compiled against HIP 7.2's header.
    char properties[1472 + 64];
    std::memset(properties, 0x5a, sizeof properties);
    REQUIRE(hipGetDevicePropertiesR0600(properties, 1) == kSuccess);
    const auto at = [&](std::size_t offset) {
        int value = 0;
        std::memcpy(&value, properties + offset, sizeof value);
        return value;
    };
    std::size_t memory = 0;
    std::memcpy(&memory, properties + 288, sizeof memory);
    CHECK(memory == std::size_t{288} << 30);
    CHECK(at(308) == 64);    // warpSize
    CHECK(at(320) == 1024);  // maxThreadsPerBlock
    CHECK(at(360) == 9);     // major
    CHECK(at(388) == 256);   // multiProcessorCount
    CHECK(std::string(properties + 1160) == "gfx950:sramecc+:xnack-");
    CHECK(properties[1472] == 0x5a);  // nothing past the end
    CHECK(hipGetDevicePropertiesR0600(properties, 2) == kInvalidDevice);

    int value = 0;
    CHECK(hipDeviceGetAttribute(&value, 63, 0) == kSuccess);  // hipDeviceAttributeMultiprocessorCount
    CHECK(value == 256);
    CHECK(hipDeviceGetAttribute(&value, 87, 0) == kSuccess);  // hipDeviceAttributeWarpSize
    CHECK(value == 64);
    CHECK(hipDeviceGetAttribute(&value, 54321, 0) == kInvalidValue);
}

TEST_CASE("CurrentDeviceIsPerThread") {
    REQUIRE(hipSetDevice(1) == kSuccess);
    int elsewhere = -1;
    std::thread([&] { hipGetDevice(&elsewhere); }).join();
    CHECK(elsewhere == 0);
    int here = -1;
    CHECK(hipGetDevice(&here) == kSuccess);
    CHECK(here == 1);
    CHECK(hipSetDevice(2) == kInvalidDevice);
    CHECK(hipGetDevice(&here) == kSuccess);
    CHECK(here == 1);
    REQUIRE(hipSetDevice(0) == kSuccess);
}

TEST_CASE("LastErrorIsPerThreadAndGoesWhenAskedFor") {
    hipGetLastError();
    CHECK(hipGetDeviceCount(nullptr) == kInvalidValue);
    int count = 0;
    CHECK(hipGetDeviceCount(&count) == kSuccess);  // a success does not wipe it
    int elsewhere = -1;
    std::thread([&] { elsewhere = hipPeekAtLastError(); }).join();
    CHECK(elsewhere == kSuccess);
    CHECK(hipPeekAtLastError() == kInvalidValue);
    CHECK(hipExtGetLastError() == kSuccess);  // of the very last call
    CHECK(hipGetLastError() == kInvalidValue);
    CHECK(hipGetLastError() == kSuccess);
}
