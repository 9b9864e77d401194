// `router` through kiln.hpp, as an engine would use it: workspace, launches, a graph, every reason to
// decline.
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "kiln/kiln.hpp"
#include "runtime/operators/router_reference.hpp"
#include "tests/allocation_counter.hpp"
#include "tests/api/simulator.hpp"

using kiln::Dtype;
using kiln::Router;
using kiln::test::DeviceVector;
using kiln::test::Driver;

namespace {

const kiln::Router kServed{.hidden = 3072, .experts = 256, .top_k = 8};

kiln::Service open_simulator() {
    kiln::test::shared_cache();
    return kiln::Service::open({.device = "sim"});
}

kiln::Plan<Router> prepare() {
    static const kiln::Service service = open_simulator();
    auto plan = service.prepare(0, kServed);
    REQUIRE_MESSAGE(plan, plan.failure().message);
    return plan;
}

// The arrays of one case on device 0, and what must come out.
struct Case {
    Case(const kiln::Plan<Router>& plan, std::int64_t m)
        : host(kiln::operators::make_router_case(m, kServed.hidden, kServed.experts, kServed.top_k, 1, 31)),
          reference(kiln::operators::router_reference(host)),
          x(host.x),
          gate(host.gate),
          shared_gate(host.shared_gate),
          ids(std::vector<std::int32_t>(static_cast<std::size_t>(m * host.columns()), -7)),
          weights(std::vector<float>(static_cast<std::size_t>(m * host.columns()), -7)),
          workspace(std::vector<std::uint8_t>(static_cast<std::size_t>(plan.workspace_bytes(m)), 0xff)) {
        REQUIRE(workspace.bytes() > 0);
        REQUIRE(plan.init_workspace(nullptr, workspace.get(), plan.workspace_bytes(m)));
    }

    [[nodiscard]] Router::Args args() const {
        return {.x = x.get(),
                .ldx = host.ldx,
                .gate = gate.get(),
                .shared_gate = shared_gate.get(),
                .ids = ids.get(),
                .weights = weights.get(),
                .scale = host.scale,
                .workspace = workspace.get()};
    }
    [[nodiscard]] bool is_right(std::int64_t m) const {
        return kiln::operators::compare_router(ids.read(), weights.read(), reference, m, host.columns())
            .passed();
    }

    kiln::operators::RouterArrays host;
    kiln::operators::RouterResults reference;
    DeviceVector<std::uint16_t> x, gate, shared_gate;
    DeviceVector<std::int32_t> ids;
    DeviceVector<float> weights;
    DeviceVector<std::uint8_t> workspace;
};

std::int32_t declines(void (*change)(Router&)) {
    static const kiln::Service service = open_simulator();
    Router problem = kServed;
    change(problem);
    return service.supports(KILN_NO_DEVICE, problem).decline();
}

}  // namespace

TEST_CASE("router: launches of every M share a workspace, one after the other") {
    const auto plan = prepare();
    CHECK(plan.max_m() == 8);
    const Case all(plan, 8);
    const Driver driver;
    CHECK(plan.launch(nullptr, 0, {}));
    for (const std::int64_t m : {8, 1, 2, 3, 4, 5, 6, 7, 8, 1}) {
        CAPTURE(m);
        kiln::test::engine::fill(all.ids.get(), 0xff, all.ids.bytes());
        REQUIRE(plan.launch(nullptr, m, all.args()));
        REQUIRE(driver.call("hipDeviceSynchronize") == 0);
        CHECK(all.is_right(m));
    }
}

TEST_CASE("router: a graph replayed twice without a reset gives the same bits as a launch") {
    const auto plan = prepare();
    const Case eager(plan, 5), replayed(plan, 5);
    const Driver driver;
    REQUIRE(plan.launch(nullptr, 5, eager.args()));
    REQUIRE(driver.call("hipDeviceSynchronize") == 0);
    CHECK(eager.is_right(5));

    namespace engine = kiln::test::engine;
    void* const stream = engine::create_stream();
    engine::begin_capture(stream, engine::CaptureMode::global);
    REQUIRE(plan.launch(stream, 5, replayed.args()));
    CHECK(plan.init_workspace(stream, replayed.workspace.get(), plan.workspace_bytes(5)).decline() ==
          KILN_DECLINE_CAPTURE);
    void* const graph = engine::end_capture(stream);
    for (int i = 0; i < 2; ++i) {
        engine::fill(replayed.ids.get(), 0xff, replayed.ids.bytes());
        engine::fill(replayed.weights.get(), 0xff, replayed.weights.bytes());
        engine::replay(graph, stream);
        REQUIRE(engine::synchronize_stream(stream) == 0);
        CHECK(replayed.ids.read() == eager.ids.read());
        CHECK(replayed.weights.read() == eager.weights.read());
    }
    engine::destroy_graph(graph);
    engine::destroy_stream(stream);
}

TEST_CASE("router: what a problem declines for") {
    CHECK(declines([](Router& r) { r.hidden = 3080; }) == KILN_DECLINE_SHAPE);
    CHECK(declines([](Router& r) { r.hidden = 3076; }) == KILN_DECLINE_DIMENSIONS);
    CHECK(declines([](Router& r) { r.top_k = 17; }) == KILN_DECLINE_DIMENSIONS);
    CHECK(declines([](Router& r) { r.shared = 2; }) == KILN_DECLINE_SHARED_EXPERTS);
    CHECK(declines([](Router& r) { r.x_type = Dtype::fp16; }) == KILN_DECLINE_X_TYPE);
    CHECK(declines([](Router& r) { r.x_inner_stride = 2; }) == KILN_DECLINE_X_INNER_STRIDE);
    CHECK(declines([](Router& r) { r.gate_type = Dtype::fp32; }) == KILN_DECLINE_W_TYPE);
    CHECK(declines([](Router& r) { r.gate_strided = true; }) == KILN_DECLINE_GATE_STRIDE);
    CHECK(declines([](Router& r) { r.weights_type = Dtype::bf16; }) == KILN_DECLINE_OUT_TYPE);
    CHECK(declines([](Router& r) { r.scoring = kiln::Scoring::sigmoid; }) == KILN_DECLINE_SCORING);
    CHECK(declines([](Router& r) { r.score_bias = true; }) == KILN_DECLINE_SCORING);
    CHECK(declines([](Router& r) { r.expert_groups = 8; }) == KILN_DECLINE_SCORING);
    CHECK(declines([](Router& r) { r.renormalise = false; }) == KILN_DECLINE_RENORMALISE);
    CHECK(declines([](Router& r) { r.expert_parallel = 8; }) == KILN_DECLINE_EXPERT_PARALLEL);
    CHECK(declines([](Router& r) { r.expert_map = true; }) == KILN_DECLINE_EXPERT_MAP);
    CHECK(declines([](Router& r) { r.simulated = true; }) == KILN_DECLINE_SIMULATED_ROUTING);
    // Named is the same as default, and so is none of what there is one of.
    CHECK(declines([](Router& r) {
              r.x_type = r.gate_type = Dtype::bf16;
              r.weights_type = Dtype::fp32;
              r.scoring = kiln::Scoring::softmax;
              r.expert_groups = r.expert_parallel = 0;
              r.x_inner_stride = 0;
          }) == 0);
    // Another model's row.
    CHECK(declines([](Router& r) { r.shared = 0; }) == 0);
}

TEST_CASE("router: what a launch declines for; declining allocates nothing") {
    const auto plan = prepare();
    alignas(256) static char memory[512];  // never reached
    const auto at = [](std::size_t offset) { return static_cast<void*>(memory + offset); };
    const Router::Args good{.x = at(0),
                            .ldx = 3072,
                            .gate = at(0),
                            .shared_gate = at(0),
                            .ids = static_cast<std::int32_t*>(at(0)),
                            .weights = static_cast<float*>(at(0)),
                            .scale = 1,
                            .workspace = at(0)};
    const auto changed = [&](auto change, std::int64_t m = 1) {
        Router::Args args = good;
        change(args);
        return plan.launch(nullptr, m, args).decline();
    };
    CHECK(changed([](auto&) {}, -1) == KILN_DECLINE_M_NEGATIVE);
    CHECK(changed([](auto&) {}, 9) == KILN_DECLINE_M_TOO_LARGE);
    CHECK(changed([](auto& a) { a.x = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(changed([](auto& a) { a.gate = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(changed([](auto& a) { a.shared_gate = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(changed([](auto& a) { a.ids = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(changed([](auto& a) { a.weights = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(changed([](auto& a) { a.workspace = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(changed([&](auto& a) { a.x = at(8); }) == KILN_DECLINE_X_ALIGNMENT);
    CHECK(changed([](auto& a) { a.ldx = 3064; }) == KILN_DECLINE_X_ROW_STRIDE);
    CHECK(changed([](auto& a) { a.ldx = 3076; }) == KILN_DECLINE_X_ROW_STRIDE);
    CHECK(changed([](auto& a) { a.ldx = 1 << 25; }) == KILN_DECLINE_X_ROW_STRIDE);
    CHECK(changed([&](auto& a) { a.gate = at(8); }) == KILN_DECLINE_GATE_ALIGNMENT);
    CHECK(changed([&](auto& a) { a.shared_gate = at(2); }) == KILN_DECLINE_GATE_ALIGNMENT);
    CHECK(changed([&](auto& a) { a.ids = static_cast<std::int32_t*>(at(2)); }) == KILN_DECLINE_IDS_ALIGNMENT);
    CHECK(changed([&](auto& a) { a.weights = static_cast<float*>(at(1)); }) ==
          KILN_DECLINE_WEIGHTS_ALIGNMENT);
    CHECK(changed([&](auto& a) { a.workspace = at(128); }) == KILN_DECLINE_WORKSPACE_ALIGNMENT);

    const auto before = kiln::test::num_allocations();
    const bool as_expected = changed([](auto& a) { a.gate = nullptr; }) == KILN_DECLINE_NULL_POINTER &&
                             plan.launch(nullptr, 0, {}).ok();
    CHECK(kiln::test::num_allocations() == before);
    CHECK(as_expected);
}
