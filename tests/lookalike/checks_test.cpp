#include <cstring>
#include <string>
#include <vector>

#include "runtime/device/hip/sim_abi.h"
#include "tests/lookalike/support.hpp"

using namespace kiln::test;

namespace {

bool says(const char* part) {
    return std::string(kiln_sim_last_fault(0)).find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("MemoryThatNothingWroteIsFollowedThroughCopies") {
    const Module module;
    int* fresh = nullptr;
    REQUIRE(hipMalloc(reinterpret_cast<void**>(&fresh), 64 * sizeof(int)) == kSuccess);
    const Array<int> array(64);
    const auto run = [&] {
        REQUIRE(launch(module("affine"), 64, nullptr, array.data, 1, 1, 64) == kSuccess);
        return hipDeviceSynchronize();
    };
    std::vector<int> values(64, 7);
    CHECK(hipMemcpy(fresh, values.data(), 40 * sizeof(int), hipMemcpyHostToDevice) == kSuccess);
    CHECK(hipMemcpy(array.data, fresh, 64 * sizeof(int), hipMemcpyDeviceToDevice) == kSuccess);
    CHECK(run() == kLaunchFailure);
    CHECK(says("never written, which 'global_load_dword"));
    CHECK(says("lane 40"));
    CHECK(hipDeviceReset() == kSuccess);

    CHECK(hipMemset(fresh + 40, 0, 24 * sizeof(int)) == kSuccess);
    CHECK(hipMemcpy(array.data, fresh, 64 * sizeof(int), hipMemcpyDefault) == kSuccess);
    CHECK(run() == kSuccess);
    CHECK(array.read()[39] == 8);
    CHECK(array.read()[40] == 1);
    CHECK(hipFree(fresh) == kSuccess);
}

TEST_CASE("WhatChangesHandsCountsAsUnwrittenAgain") {
    const Module module;
    const Array<int> array(64);
    CHECK(kiln_sim_forget_written(array.data + 63, sizeof(int)) == kSuccess);
    REQUIRE(launch(module("affine"), 63, nullptr, array.data, 1, 1, 63) == kSuccess);
    CHECK(hipDeviceSynchronize() == kSuccess);
    REQUIRE(launch(module("affine"), 64, nullptr, array.data, 1, 1, 64) == kSuccess);
    CHECK(hipDeviceSynchronize() == kLaunchFailure);
    CHECK(says("lane 63"));
    CHECK(hipDeviceReset() == kSuccess);
    CHECK(kiln_sim_forget_written(array.data + 63, 2 * sizeof(int)) == kInvalidValue);
    int host = 0;
    CHECK(kiln_sim_forget_written(&host, sizeof host) == kInvalidValue);
    hipGetLastError();

    // What was there when the check went off counts as written.
    const kiln_sim_rules off = {sizeof off, nullptr, nullptr, "none"};
    CHECK(kiln_sim_set_rules(0, &off) == kSuccess);
    REQUIRE(launch(module("affine"), 64, nullptr, array.data, 1, 1, 64) == kSuccess);
    CHECK(hipDeviceSynchronize() == kSuccess);
    CHECK(kiln_sim_set_rules(0, nullptr) == kSuccess);
}

TEST_CASE("RacesAreLookedForWhenTheProgramWantsIt") {
    const Module module;
    const Array<int> counter(1), plain(1), place(20), seen(20);
    const auto run = [&] {
        REQUIRE(launch(module("places"), 20 * 64, nullptr, counter.data, plain.data, place.data, seen.data) ==
                kSuccess);
        return hipDeviceSynchronize();
    };
    CHECK(run() == kSuccess);
    const kiln_sim_rules rules = {sizeof rules, nullptr, nullptr, "races"};
    REQUIRE(kiln_sim_set_rules(0, &rules) == kSuccess);
    CHECK(run() == kLaunchFailure);
    CHECK(says("kernel places: 'global_load_dword"));
    CHECK(says("a race: 4 bytes at 0x"));
    CHECK(says("are touched by 'global_store_dword"));
    CHECK(hipDeviceReset() == kSuccess);
    CHECK(kiln_sim_set_rules(0, nullptr) == kSuccess);
    CHECK(run() == kSuccess);
}

TEST_CASE("WhoUsesFreedMemoryIsToldSo") {
    const Module module;
    int* freed = nullptr;
    REQUIRE(hipMalloc(reinterpret_cast<void**>(&freed), 64 * sizeof(int)) == kSuccess);
    REQUIRE(hipMemset(freed, 0, 64 * sizeof(int)) == kSuccess);
    REQUIRE(hipFree(freed) == kSuccess);
    const Array<int> next(64);  // of the same size, and not there
    CHECK(next.data != freed);
    REQUIRE(launch(module("affine"), 64, nullptr, freed, 1, 1, 64) == kSuccess);
    CHECK(hipDeviceSynchronize() == kIllegalAddress);
    CHECK(says("inside of an allocation that was freed"));
    CHECK(hipDeviceReset() == kSuccess);
}
