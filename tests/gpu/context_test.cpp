// kiln beside an engine that uses the CUDA driver itself, or through the CUDA runtime, as PyTorch does: one
// primary context, and whatever context is current stays so.
#include <doctest/doctest.h>

#include <thread>

#include "tests/api/small_case.hpp"
#include "tests/engine/engine_cuda.hpp"

using namespace kiln::test;

namespace {

constexpr int kDevice = 0;

void* current_context() {
    void* context = nullptr;
    engine::cuda().require("cuCtxGetCurrent", &context);
    return context;
}

void make_current(void* context) {
    engine::cuda().require("cuCtxSetCurrent", context);
}

struct PrimaryState {
    unsigned flags = 0;
    int active = 0;
};
PrimaryState primary_state() {
    PrimaryState state;
    int device = 0;
    engine::cuda().require("cuDeviceGet", &device, kDevice);
    engine::cuda().require("cuDevicePrimaryCtxGetState", device, &state.flags, &state.active);
    return state;
}

struct Beside {
    Folder folder;
    std::string shapes = folder.write("mine.json", small_table({small_row(16, 1), small_row(32, 1)}));

    Beside() { engine::set_device(kDevice); }
    ~Beside() { engine::set_device(kDevice); }
    Beside(const Beside&) = delete;
    Beside& operator=(const Beside&) = delete;

    [[nodiscard]] kiln::Service open() const {
        shared_cache();
        auto service =
            kiln::Service::open({.shapes_path = shapes.c_str(), .device = engine::device(), .log = "off"});
        REQUIRE_MESSAGE(service, service.failure().message);
        return service;
    }
};

}  // namespace

TEST_CASE_FIXTURE(Beside,
                  "context: plans live in the primary context, which stays the engine's when kiln goes") {
    const SmallCase arrays(9, 16);
    const auto before = primary_state();
    void* const stream = engine::create_stream();
    {
        const auto plan = open().prepare(kDevice, small_problem(16));
        REQUIRE_MESSAGE(plan, plan.failure().message);
        CHECK(current_context() == engine::primary_context(kDevice));
        REQUIRE(plan.launch(stream, 9, arrays.args()));
        REQUIRE(engine::synchronize_stream(stream) == 0);
    }
    CHECK(arrays.is_right());
    CHECK(primary_state().active == 1);
    CHECK(primary_state().flags == before.flags);
    arrays.clear();  // memory and streams of the engine outlive every plan
    CHECK(engine::synchronize_stream(stream) == 0);
    engine::destroy_stream(stream);
}

TEST_CASE_FIXTURE(Beside, "context: a thread without one prepares and launches on device 0, and stays so") {
    const auto service = open();
    std::thread([&] {
        for (const auto mode :
             {kiln::PrepareMode::blocking, kiln::PrepareMode::lazy, kiln::PrepareMode::background}) {
            engine::set_device(kDevice);
            const SmallCase arrays(4, 16);
            make_current(nullptr);
            const auto plan = service.prepare(kDevice, small_problem(16), mode);
            CHECK_MESSAGE(plan, plan.failure().message);
            CHECK((mode == kiln::PrepareMode::lazy || plan.wait()));
            const auto launched = plan.launch(nullptr, 4, arrays.args());
            CHECK_MESSAGE(launched.ok(), launched.text());
            CHECK(current_context() == nullptr);
            CHECK(engine::synchronize() == 0);
            CHECK(arrays.is_right());
        }
    }).join();
}

TEST_CASE_FIXTURE(Beside,
                  "context: another context of the engine's stays current, and no plan is launched into it") {
    const auto service = open();
    const SmallCase arrays(4, 16);
    void* own = nullptr;
    int device = 0;
    engine::cuda().require("cuDeviceGet", &device, kDevice);
    engine::cuda().require("cuCtxCreate_v2", &own, 0U, device);
    CHECK(current_context() == own);
    const auto plan = service.prepare(kDevice, small_problem(16));
    REQUIRE_MESSAGE(plan, plan.failure().message);
    CHECK(current_context() == own);
    const auto refused = plan.launch(nullptr, 4, arrays.args());
    CHECK_MESSAGE(!refused.ok(), refused.text());
    CHECK(current_context() == own);
    engine::cuda().require("cuCtxDestroy_v2", own);

    engine::set_device(kDevice);
    CHECK(plan.ready(4));
    CHECK(service.statistics().disabled == 0);
    REQUIRE(plan.launch(nullptr, 4, arrays.args()));
    REQUIRE(engine::synchronize() == 0);
    CHECK(arrays.is_right());
}
