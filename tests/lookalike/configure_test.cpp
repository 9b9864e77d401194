// In a program of its own: the look-alike is configured once a process, before its first use.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdlib>

#include "runtime/device/hip/sim_abi.h"
#include "tests/lookalike/hip_plain.h"

TEST_CASE("ConfigureComesFirst") {
    kiln_sim_config config{};
    CHECK(kiln_sim_configure(&config) == 1);  // no size
    config.struct_bytes = sizeof config;
    config.num_devices = 17;
    CHECK(kiln_sim_configure(&config) == 1);
    ::setenv("KILN_SIM_DEVICES", "5", 1);
    config.num_devices = 2;  // the default, but said: it goes before the environment
    config.memory_bytes = 1 << 20;
    CHECK(kiln_sim_configure(&config) == 0);
    int count = 0;
    CHECK(hipGetDeviceCount(&count) == 0);
    CHECK(count == 2);
    std::size_t free = 0, total = 0;
    CHECK(hipMemGetInfo(&free, &total) == 0);
    CHECK(total == 1 << 20);
    void* pointer = nullptr;
    CHECK(hipMalloc(&pointer, (1 << 20) + 1) == 2);  // hipErrorOutOfMemory
    CHECK(kiln_sim_configure(&config) == 401);       // hipErrorIllegalState: too late
}
