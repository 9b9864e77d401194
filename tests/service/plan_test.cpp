#include "runtime/service/plan.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "tests/allocation_counter.hpp"
#include "tests/service/device_double.hpp"
#include "tests/service/launch_linear.hpp"

using namespace kiln::service;
using kiln::test::DeviceDouble;

namespace {

struct Fixture {
    std::shared_ptr<DeviceDouble> device = std::make_shared<DeviceDouble>();
    std::shared_ptr<BucketLoader> loader = std::make_shared<BucketLoader>(nullptr);
    alignas(16) char memory[64] = {};
    kiln_linear_args args{memory, 128, memory, reinterpret_cast<float*>(memory), memory};
    Plan plan = make({4, 16, 32});

    Plan make(const std::vector<std::int64_t>& edges) {
        const auto problem = kiln::operators::complete(kiln::operators::linear(),
                                                       {{"n", std::int64_t{16}}, {"k", std::int64_t{128}}});
        std::vector<kiln::operators::Specialisation> wanted(edges.size());
        for (std::size_t i = 0; i < edges.size(); ++i) {
            wanted[i].bucket.max_m = edges[i];
            wanted[i].kernel_name = "kernel_m" + std::to_string(edges[i]);
            wanted[i].request_document = wanted[i].kernel_name;
        }
        auto set = std::make_shared<BucketSet>(device, loader, wanted, PrepareMode::blocking);
        for (std::size_t i = 0; i < edges.size(); ++i) {
            LoadedBucket bucket;
            bucket.function = &memory;
            bucket.shape.grid.x = static_cast<std::uint32_t>(edges[i]);
            bucket.health = loader->health(0, wanted[i]);
            set->set_loaded(i, std::make_unique<const LoadedBucket>(std::move(bucket)));
        }
        return Plan(kiln::operators::linear(), *problem, device, loader, set, nullptr);
    }
    kiln_status launch(std::int64_t m) { return kiln::test::launch_linear(plan, nullptr, m, args); }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "plan: the first bucket with M <= max_m is launched") {
    for (const auto& [m, edge] :
         {std::pair<int, unsigned>{1, 4}, {4, 4}, {5, 16}, {16, 16}, {17, 32}, {32, 32}}) {
        CHECK(launch(m) == KILN_OK);
        CHECK(device->last_grid == edge);
    }
    CHECK(launch(33) == KILN_DECLINE_M_TOO_LARGE);
    CHECK(device->launches == 6);
}

TEST_CASE_FIXTURE(Fixture, "plan: buckets beyond the lookup are found too") {
    const Plan large = make({1000, 5000, 1 << 20});
    CHECK(large.bucket_for(1000)->max_m == 1000);
    CHECK(large.bucket_for(1001)->max_m == 5000);
    CHECK(large.bucket_for(1024)->max_m == 5000);
    CHECK(large.bucket_for(1025)->max_m == 5000);
    CHECK(large.bucket_for(5000)->max_m == 5000);
    CHECK(large.bucket_for(5001)->max_m == 1 << 20);
    CHECK(large.bucket_for(1 << 20)->max_m == 1 << 20);
    CHECK(large.bucket_for((1 << 20) + 1) == nullptr);
    CHECK(large.bucket_for(0) == nullptr);
    CHECK(large.bucket_for(-5) == nullptr);
}

TEST_CASE_FIXTURE(Fixture, "plan: M = 0 succeeds, launches nothing and looks at no argument") {
    args = {};
    CHECK(launch(0) == KILN_OK);
    CHECK(launch(-1) == KILN_DECLINE_M_NEGATIVE);
    CHECK(device->launches == 0);
}

TEST_CASE_FIXTURE(Fixture, "plan: a launch declines what its arguments rule out") {
    const kiln_linear_args good = args;
    const auto declines = [&](auto change) {
        args = good;
        change(args);
        return launch(1);
    };
    CHECK(declines([](auto& a) { a.x = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(declines([](auto& a) { a.w = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(declines([](auto& a) { a.w_scale = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(declines([](auto& a) { a.out = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(declines([&](auto& a) { a.x = memory + 8; }) == KILN_DECLINE_X_ALIGNMENT);
    CHECK(declines([&](auto& a) { a.w = memory + 8; }) == KILN_DECLINE_W_ALIGNMENT);
    CHECK(declines([&](auto& a) { a.w_scale = reinterpret_cast<float*>(memory + 2); }) ==
          KILN_DECLINE_W_SCALE_ALIGNMENT);
    CHECK(declines([&](auto& a) { a.out = memory + 8; }) == KILN_DECLINE_OUT_ALIGNMENT);
    CHECK(declines([](auto& a) { a.ldx = 120; }) == KILN_DECLINE_X_ROW_STRIDE);
    CHECK(declines([](auto& a) { a.ldx = 132; }) == KILN_DECLINE_X_ROW_STRIDE);
    CHECK(declines([](auto& a) { a.ldx = 1 << 25; }) == KILN_DECLINE_X_ROW_STRIDE);
    CHECK(declines([](auto& a) { a.ldx = -128; }) == KILN_DECLINE_X_ROW_STRIDE);
    CHECK(device->launches == 0);
    CHECK(declines([](auto& a) { a.ldx = (1 << 25) - 8; }) == KILN_OK);
    CHECK(declines([&](auto& a) { a.w_scale = reinterpret_cast<float*>(memory + 4); }) == KILN_OK);
}

TEST_CASE_FIXTURE(Fixture, "plan: another current device declines") {
    device->current = 1;
    CHECK(launch(1) == KILN_DECLINE_OTHER_DEVICE);
    CHECK(device->launches == 0);
}

TEST_CASE_FIXTURE(Fixture,
                  "plan: a refused launch fails, disables that bucket alone, and declines from then on") {
    kiln::log::set_level(kiln::log::Level::off);
    device->launch_error = 701;
    CHECK(launch(1) == -KILN_ERROR_LAUNCH_FAILED);
    device->launch_error = 0;
    CHECK(launch(1) == KILN_DECLINE_DISABLED);
    CHECK(launch(5) == KILN_OK);
    CHECK(device->launches == 2);
    // Every plan that uses the specialisation sees it.
    CHECK(kiln::test::launch_linear(make({4}), nullptr, 1, args) == KILN_DECLINE_DISABLED);
}

TEST_CASE_FIXTURE(Fixture, "plan: an earlier failure of the context is an error and disables nothing") {
    device->launch_error = 700;
    device->earlier_failure = true;
    CHECK(launch(1) == -KILN_ERROR_DEVICE_FAILED);
    device->launch_error = 0;
    CHECK(launch(1) == KILN_OK);
}

TEST_CASE_FIXTURE(Fixture, "plan: the launch path allocates nothing, declines included") {
    args.ldx = 120;
    const auto before = kiln::test::num_allocations();
    kiln_status sum = 0;
    for (int i = 0; i < 100; ++i) {
        args.ldx = 128;
        sum += launch(i % 40);
        args.ldx = 120;
        sum += launch(3);
    }
    CHECK(kiln::test::num_allocations() == before);
    CHECK(sum != 0);
}

TEST_CASE_FIXTURE(Fixture, "plan: many threads launch at once") {
    std::vector<std::thread> threads;
    std::atomic<int> failed{0};
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] {
            for (int m = 0; m < 1000; ++m) {
                failed += launch(1 + (m + i) % 32) != KILN_OK;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    CHECK(failed == 0);
    CHECK(device->launches == 4000);
}
