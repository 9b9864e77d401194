// A shipped problem, each M that its row covers: a graph with a launch of every M is replayed, and what comes
// out is what launches one by one gave, bit for bit.
#include <doctest/doctest.h>

#include <memory>

#include "kiln/kiln.hpp"
#include "runtime/operators/linear_reference.hpp"
#include "tests/api/story.hpp"

using namespace kiln::test;

namespace {

constexpr kiln::Linear kProblem{.n = 4096, .k = 1024};
constexpr std::int64_t kMaxM = 32;
constexpr std::uint64_t kSeed = 20411;

// Inputs once, outputs of every M side by side.
struct Arrays {
    kiln::operators::LinearArrays host =
        kiln::operators::make_linear_case(kMaxM, kProblem.n, kProblem.k, kSeed);
    DeviceVector<std::uint16_t> x{host.x};
    DeviceVector<std::uint8_t> w{host.w};
    DeviceVector<float> w_scale{host.w_scale};
    std::vector<std::unique_ptr<DeviceVector<std::uint16_t>>> outs;

    Arrays() {
        for (std::int64_t m = 1; m <= kMaxM; ++m) {
            outs.push_back(std::make_unique<DeviceVector<std::uint16_t>>(
                std::vector<std::uint16_t>(static_cast<std::size_t>(m * kProblem.n), 0xffff)));
        }
    }
    [[nodiscard]] const DeviceVector<std::uint16_t>& out(std::int64_t m) const {
        return *outs[static_cast<std::size_t>(m - 1)];
    }
    [[nodiscard]] kiln::Linear::Args args(std::int64_t m) const {
        return {.x = x.get(), .ldx = host.ldx, .w = w.get(), .w_scale = w_scale.get(), .out = out(m).get()};
    }
    void clear() const {
        for (const auto& out : outs) {
            engine::fill(out->get(), 0xff, out->bytes());
        }
    }
};

}  // namespace

TEST_CASE("replay: one graph of every M gives what eager launches give, as often as it is replayed") {
    INFO("seed ", kSeed);
    shared_cache();
    const auto service = kiln::Service::open({.device = engine::device(), .log = "off"});
    const auto plan = service.prepare(0, kProblem);
    REQUIRE_MESSAGE(plan, plan.failure().message);
    REQUIRE(plan.max_m() >= kMaxM);
    const Arrays arrays;
    void* const stream = engine::create_stream();

    engine::begin_capture(stream, engine::CaptureMode::global);
    for (std::int64_t m = 1; m <= kMaxM; ++m) {
        REQUIRE(plan.launch(stream, m, arrays.args(m)));
    }
    void* const graph = engine::end_capture(stream);
    std::vector<std::vector<std::uint16_t>> eager;
    for (std::int64_t m = 1; m <= kMaxM; ++m) {
        REQUIRE(plan.launch(stream, m, arrays.args(m)));
    }
    REQUIRE(engine::synchronize_stream(stream) == 0);
    const auto reference = kiln::operators::linear_reference(arrays.host);
    for (std::int64_t m = 1; m <= kMaxM; ++m) {
        CAPTURE(m);
        eager.push_back(arrays.out(m).read());
        CHECK(kiln::operators::compare_linear(eager.back(), reference, m, kProblem.n).passed());
    }
    for (int round = 0; round < 3; ++round) {
        arrays.clear();
        engine::replay(graph, stream);
        REQUIRE(engine::synchronize_stream(stream) == 0);
        for (std::int64_t m = 1; m <= kMaxM; ++m) {
            CAPTURE(m);
            CHECK(arrays.out(m).read() == eager[static_cast<std::size_t>(m - 1)]);
        }
    }
    engine::destroy_graph(graph);
    engine::destroy_stream(stream);
}
