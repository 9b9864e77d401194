#include "runtime/service/plan.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "runtime/operators/linear_small_m.hpp"
#include "tests/allocation_counter.hpp"
#include "tests/operators/template_double.hpp"
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

    // One kernel for each bucket, its grid as large as the bucket.
    Plan make(const std::vector<std::int64_t>& edges) {
        return make(edges, kiln::operators::linear_small_m_gfx950(),
                    [this](const kiln::operators::Bucket& bucket) {
                        return std::vector<LoadedKernel>{
                            {&memory, {}, {.fixed = static_cast<std::uint32_t>(bucket.max_m)}}};
                    });
    }

    template <class Kernels>
    Plan make(const std::vector<std::int64_t>& edges, const kiln::operators::Template& source,
              Kernels kernels) {
        const auto problem = kiln::operators::complete(kiln::operators::linear(),
                                                       {{"n", std::int64_t{16}}, {"k", std::int64_t{128}}});
        std::vector<kiln::operators::Pipeline> wanted(edges.size());
        for (std::size_t i = 0; i < edges.size(); ++i) {
            wanted[i].source_template = &source;
            wanted[i].bucket.max_m = edges[i];
            wanted[i].kernel_name = "kernel_m" + std::to_string(edges[i]);
            kiln::operators::Specialisation only;
            only.kernel_name = only.request_document = wanted[i].kernel_name;
            wanted[i].stages.push_back({std::move(only), 0});
        }
        auto set = std::make_shared<BucketSet>(device, loader, wanted, PrepareMode::blocking);
        for (std::size_t i = 0; i < edges.size(); ++i) {
            LoadedBucket bucket;
            bucket.kernels = kernels(wanted[i].bucket);
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

namespace {

// An operator whose launches have a workspace: the problem is linear's, for no real plan is needed.
struct ArgsWithWorkspace {
    void* workspace = nullptr;
    kiln::operators::Workspace* packed = nullptr;
};
int check_launch(const kiln::operators::LinearProblem&, std::int64_t, const ArgsWithWorkspace&) {
    return KILN_OK;
}
kiln::operators::Workspace pack(const kiln::operators::LinearProblem&, std::int64_t,
                                const ArgsWithWorkspace& args, const kiln::operators::Workspace& workspace) {
    *args.packed = workspace;
    return workspace;
}

struct Several : Fixture {
    kiln::test::TemplateDouble source;
    Plan several = make({4, 16, 32}, source, [this](const kiln::operators::Bucket& bucket) {
        std::vector<LoadedKernel> loaded;
        for (const auto& kernel : source.kernels({}, bucket)) {
            loaded.push_back({&memory, kernel.shape, kernel.grid_x});
        }
        return loaded;
    });
    alignas(256) std::byte space[4096] = {};
    kiln::operators::Workspace packed;

    Several() { device->keep_shapes = true; }

    kiln_status launch_with(std::int64_t m, void* workspace) {
        return kiln::service::launch<kiln::operators::LinearProblem>(several, nullptr, m,
                                                                     ArgsWithWorkspace{workspace, &packed});
    }
};

}  // namespace

TEST_CASE_FIXTURE(Several, "plan: the kernels of a bucket are launched in order, each grid by its own rule") {
    REQUIRE(launch_with(5, space) == KILN_OK);
    REQUIRE(device->shapes.size() == 2);
    CHECK(device->shapes[0].grid.x == 3 + 2 * 13);  // 50 pairs in steps of 4
    CHECK(device->shapes[0].grid.y == 2);
    CHECK(device->shapes[1].grid.x == 7);
    CHECK(device->shapes[1].block.x == 256);
    CHECK(device->shapes[1].dynamic_lds_bytes == 512);
    REQUIRE(launch_with(32, space) == KILN_OK);
    CHECK(device->shapes[2].grid.x == 3 + 2 * 80);
}

TEST_CASE("plan: a grid ends where its rule says, however many tokens there are") {
    constexpr std::int64_t kMany = 0x7fffffff;
    CHECK(kiln::operators::GridRule{.per_step = 8, .per_token = 16}(kMany) == 0x7fffffff);
    CHECK(kiln::operators::GridRule{.fixed = 1, .per_step = 3, .most = 1000}(kMany) == 1000);
    CHECK(kiln::operators::GridRule{.fixed = 1, .per_step = 3, .most = 1000}(2) == 7);
}

TEST_CASE_FIXTURE(Several, "plan: a refused kernel ends its launch") {
    kiln::log::set_level(kiln::log::Level::off);
    device->launch_error = 701;
    CHECK(launch_with(5, space) == -KILN_ERROR_LAUNCH_FAILED);
    CHECK(device->launches == 1);
}

TEST_CASE_FIXTURE(Several, "plan: a workspace is as large as its buckets need, counters in front") {
    CHECK(several.workspace_bytes(0) == 0);
    CHECK(several.workspace_bytes(4) == 0);  // that bucket needs none
    CHECK(several.zeroed_bytes() == 512);
    CHECK(several.workspace_bytes(5) == 512 + 500);
    CHECK(several.workspace_bytes(32) == 512 + 3200);
    CHECK(several.workspace_bytes(1 << 30) == 512 + 3200);
    CHECK(plan.workspace_bytes(32) == 0);

    REQUIRE(launch_with(5, space) == KILN_OK);
    CHECK(packed.zeroed == space);
    CHECK(packed.scratch == space + 512);
    // Not needed, not looked at.
    REQUIRE(launch_with(4, nullptr) == KILN_OK);
    CHECK(packed.zeroed == nullptr);
    CHECK(packed.scratch == nullptr);
    CHECK(launch_with(5, nullptr) == KILN_DECLINE_NULL_POINTER);
    CHECK(launch_with(5, space + 128) == KILN_DECLINE_WORKSPACE_ALIGNMENT);
    CHECK(launch_with(33, nullptr) == KILN_DECLINE_M_TOO_LARGE);
    CHECK(device->launches == 4);
}

TEST_CASE_FIXTURE(Several, "plan: initialising a workspace fills its counters, outside of a capture") {
    REQUIRE(several.init_workspace(nullptr, space, several.workspace_bytes(32)));
    CHECK(device->filled == 512);
    CHECK(device->filled_at == space);
    CHECK(several.init_workspace(nullptr, nullptr, 0));
    CHECK(plan.init_workspace(nullptr, nullptr, plan.workspace_bytes(32)));
    for (const auto& [at, bytes] :
         {std::pair<std::byte*, std::int64_t>{nullptr, 4000}, {space + 16, 4000}, {space, 511}}) {
        const auto ready = several.init_workspace(nullptr, at, bytes);
        REQUIRE(!ready);
        CHECK(ready.error().status() == -KILN_ERROR_INVALID_ARGUMENT);
    }
    device->capturing = true;
    const auto captured = several.init_workspace(nullptr, space, 4000);
    REQUIRE(!captured);
    CHECK(captured.error().decline == KILN_DECLINE_CAPTURE);
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

namespace {

// Buckets of one and of two stages; "shared" is a stage of both.
struct Staged : Fixture {
    std::vector<kiln::operators::Pipeline> wanted{pipeline(4, {"shared"}), pipeline(16, {"shared", "own"})};
    Plan staged = make_staged();

    Staged() { device->keep_shapes = true; }

    static kiln::operators::Pipeline pipeline(std::int64_t max_m, const std::vector<std::string>& names) {
        kiln::operators::Pipeline result;
        result.source_template = &kiln::operators::linear_small_m_gfx950();
        result.bucket.max_m = max_m;
        result.kernel_name = "bucket_m" + std::to_string(max_m);
        for (const std::string& name : names) {
            kiln::operators::Specialisation stage;
            stage.kernel_name = stage.request_document = name;
            result.stages.push_back({std::move(stage), 0});
        }
        return result;
    }
    // The first stage takes the two pointers in front of LinearKernargs, the second what is behind them.
    Plan make_staged() {
        auto set = std::make_shared<BucketSet>(device, loader, wanted, PrepareMode::blocking);
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            LoadedBucket bucket;
            bucket.kernels.push_back({&memory, {}, {.fixed = 1}, 0, 16, 0});
            if (wanted[i].stages.size() > 1) {
                bucket.kernels.push_back({&memory, {}, {.fixed = 2}, 16, 24, 1});
            }
            set->set_loaded(i, std::make_unique<const LoadedBucket>(std::move(bucket)));
        }
        return Plan(kiln::operators::linear(), plan.problem(), device, loader, set, nullptr);
    }
    kiln_status launch(std::int64_t m) { return kiln::test::launch_linear(staged, nullptr, m, args); }
};

}  // namespace

TEST_CASE_FIXTURE(Staged, "plan: the stages of a bucket run in order, each with its part of the arguments") {
    REQUIRE(launch(5) == KILN_OK);
    REQUIRE(device->arguments.size() == 2);
    const kiln::operators::LinearKernargs expected{memory, memory, reinterpret_cast<float*>(memory),
                                                   memory, 5,      128};
    const auto bytes = std::as_bytes(std::span(&expected, 1));
    CHECK(std::ranges::equal(device->arguments[0], bytes.first(16)));
    CHECK(std::ranges::equal(device->arguments[1], bytes.subspan(16, 24)));
    CHECK(device->shapes[1].grid.x == 2);
}

TEST_CASE_FIXTURE(Staged,
                  "plan: a refused stage takes out the buckets that it is a stage of, and no others") {
    kiln::log::set_level(kiln::log::Level::off);
    device->refused_launch = 2;
    CHECK(launch(5) == -KILN_ERROR_LAUNCH_FAILED);
    CHECK(launch(5) == KILN_DECLINE_DISABLED);
    CHECK(staged.ready(5) == KILN_DECLINE_DISABLED);
    CHECK(launch(1) == KILN_OK);
    CHECK(device->launches == 3);
    const auto refusal = loader->disabled(0, wanted[1]);
    REQUIRE(refusal);
    CHECK(refusal->error.message == "bucket_m16: its stage own failed earlier");

    device->refused_launch = 4;
    CHECK(launch(1) == -KILN_ERROR_LAUNCH_FAILED);
    CHECK(launch(1) == KILN_DECLINE_DISABLED);
    CHECK(loader->disabled(0, wanted[0])->error.message == "shared failed earlier");
    // Another plan that has the stage in common sees it before it has launched anything.
    CHECK(kiln::test::launch_linear(make_staged(), nullptr, 5, args) == KILN_DECLINE_DISABLED);
    CHECK(device->launches == 4);
}
