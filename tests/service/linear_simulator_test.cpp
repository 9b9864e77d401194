// `linear` on the simulated gfx950, through the whole service: shipped tables and templates, the real
// compiler, the HIP adapter over the look-alike.
#include <doctest/doctest.h>

#include <vector>

#include "runtime/formats/bf16.hpp"
#include "runtime/formats/e4m3.hpp"
#include "runtime/formats/quantise.hpp"
#include "runtime/formats/weight_layout.hpp"
#include "runtime/operators/linear_reference.hpp"
#include "runtime/service/device_array.hpp"
#include "runtime/service/trial.hpp"
#include "tests/service/launch_linear.hpp"
#include "tests/service/simulator.hpp"

using namespace kiln::service;
using kiln::device::Device;
using kiln::operators::linear;
using kiln::test::simulator;
using kiln::test::well;

namespace {

constexpr std::uint64_t kSeed = 20250101;

std::shared_ptr<const Plan> prepare(std::int64_t n, std::int64_t k, int ordinal = 0) {
    const auto problem = well(kiln::operators::complete(linear(), {{"n", n}, {"k", k}}));
    auto plan = simulator().prepare(ordinal, linear(), problem);
    REQUIRE_MESSAGE(plan, plan.error().error.message);
    return *std::move(plan);
}

void check_problem(std::int64_t n, std::int64_t k, std::initializer_list<std::int64_t> rows) {
    CAPTURE(n);
    CAPTURE(k);
    INFO("seed ", kSeed);
    const std::shared_ptr<const Plan> plan = prepare(n, k);
    const std::unique_ptr<Trial> trial = well(Trial::create(plan, 32, kSeed));
    for (const std::int64_t m : rows) {
        const TrialResult result = well(trial->run(m));
        CHECK_MESSAGE(result.passed,
                      "M = " << m << " (" << result.bucket->kernel_name << "): " << result.remark);
        REQUIRE(result.counts);
        CHECK(result.counts->work_groups == result.bucket->loaded()->kernels.front().grid_x(result.m));
        // Weights are read once.
        CHECK(result.counts->global_bytes_read >= static_cast<std::uint64_t>(n * k));
    }
}

// The arrays of one launch on a device.
struct Arrays {
    DeviceArray x, w, w_scale, out;
    std::int64_t ldx;
    std::size_t outputs;

    static Arrays make(const std::shared_ptr<Device>& device, const kiln::operators::LinearArrays& host) {
        const auto upload = [&](const auto& values) {
            return well(DeviceArray::upload(device, std::as_bytes(std::span(values))));
        };
        const auto outputs = static_cast<std::size_t>(host.m * host.n);
        return {upload(host.x),
                upload(host.w),
                upload(host.w_scale),
                well(DeviceArray::create(device, outputs * sizeof(std::uint16_t))),
                host.ldx,
                outputs};
    }
    [[nodiscard]] kiln_linear_args args() const {
        return {x.get(), ldx, w.get(), static_cast<const float*>(w_scale.get()), out.get()};
    }
    [[nodiscard]] std::vector<std::uint16_t> results(Device& device, kiln::device::Stream stream) const {
        std::vector<std::uint16_t> values(outputs);
        well(device.copy_to_host(std::as_writable_bytes(std::span(values)), out.get(), stream));
        return values;
    }
    void clear(Device& device, kiln::device::Stream stream) const {
        well(device.fill(out.get(), std::byte{0xff}, outputs * sizeof(std::uint16_t), stream));
    }
};

}  // namespace

TEST_CASE("linear: the problems of Qwen3.5-397B at TP4 are within their bound") {
    for (const auto& [n, k] : {std::pair<int, int>{5120, 4096}, {4608, 4096}, {4096, 2048}}) {
        check_problem(n, k, {1, 3, 4, 8, 9, 16, 17, 24, 31, 32});
    }
}

TEST_CASE("linear: other shapes are within the same bound") {
    for (const auto& [n, k] :
         {std::pair<int, int>{2560, 4096}, {4096, 1024}, {4096, 8192}, {8704, 4096}, {4096, 4096}}) {
        check_problem(n, k, {1, 8, 17, 32});
    }
}

TEST_CASE("linear: with one-hot weights and unit scales the output is bf16(q * xs), bit for bit") {
    const std::int64_t n = 4096, k = 2048;
    INFO("seed ", kSeed);
    kiln::operators::LinearArrays host = kiln::operators::make_linear_case(32, n, k, kSeed);
    // Column c picks k = 5 c + 3 mod K: every k is picked, neighbours by different columns.
    const auto picked = [k = static_cast<std::size_t>(k)](std::size_t column) {
        return (5 * column + 3) % k;
    };
    constexpr std::uint8_t kOne = 0x38;
    std::fill(host.w.begin(), host.w.end(), std::uint8_t{0});
    for (std::size_t column = 0; column < static_cast<std::size_t>(n); ++column) {
        host.w[kiln::formats::l1_offset(column, picked(column), static_cast<std::size_t>(k))] = kOne;
    }
    std::fill(host.w_scale.begin(), host.w_scale.end(), 1.0f);

    const std::shared_ptr<const Plan> plan = prepare(n, k);
    Device& device = plan->device();
    well(device.make_current());
    const Arrays arrays = Arrays::make(plan->shared_device(), host);
    for (const std::int64_t m : {2, 8, 16, 32}) {  // every bucket
        arrays.clear(device, nullptr);
        REQUIRE(kiln::test::launch_linear(*plan, nullptr, m, arrays.args()) == KILN_OK);
        const std::vector<std::uint16_t> out = arrays.results(device, nullptr);
        std::vector<std::uint8_t> q(static_cast<std::size_t>(k));
        std::vector<float> scales(static_cast<std::size_t>(k / 128));
        std::size_t wrong = 0;
        for (std::size_t row = 0; row < static_cast<std::size_t>(m); ++row) {
            kiln::formats::quantise_1x128(std::span(host.x).subspan(row * static_cast<std::size_t>(host.ldx),
                                                                    static_cast<std::size_t>(k)),
                                          q, scales);
            for (std::size_t column = 0; column < static_cast<std::size_t>(n); ++column) {
                const float value =
                    kiln::formats::e4m3_to_float(q[picked(column)]) * scales[picked(column) / 128];
                // A sum with the other blocks' zeros has no negative zero.
                const std::uint16_t expected = value == 0 ? 0 : kiln::formats::float_to_bf16(value);
                wrong += out[row * static_cast<std::size_t>(n) + column] != expected;
            }
        }
        CHECK_MESSAGE(wrong == 0, "M = " << m);
    }
}

TEST_CASE("linear: a graph's replays equal the eager launch, bit for bit") {
    const std::shared_ptr<const Plan> plan = prepare(4096, 1024);
    Device& device = plan->device();
    well(device.make_current());
    const Arrays arrays =
        Arrays::make(plan->shared_device(), kiln::operators::make_linear_case(17, 4096, 1024, kSeed));
    const kiln::device::Stream stream = well(device.create_stream());
    REQUIRE(kiln::test::launch_linear(*plan, stream, 17, arrays.args()) == KILN_OK);
    const std::vector<std::uint16_t> eager = arrays.results(device, stream);

    well(device.begin_capture(stream));
    // A prepare() in between must not break the capture: what it loads was loaded before, and something new
    // loads too.
    CHECK(prepare(4096, 1024) != nullptr);
    CHECK(prepare(2560, 4096) != nullptr);
    CHECK(kiln::test::launch_linear(*plan, stream, 17, arrays.args()) == KILN_OK);
    const Device::Graph graph = well(device.end_capture(stream));
    for (int replay = 0; replay < 2; ++replay) {
        arrays.clear(device, stream);
        well(device.replay(graph, stream));
        well(device.synchronize(stream));
        CHECK(arrays.results(device, stream) == eager);
    }
    well(device.destroy_graph(graph));
    well(device.destroy_stream(stream));
}

TEST_CASE(
    "linear: each device has its own plan, prepare leaves the current device alone, launch refuses another") {
    REQUIRE(well(simulator().devices()).size() >= 2);
    const std::shared_ptr<Device> first = well(simulator().device(0));
    well(first->make_current());
    const std::shared_ptr<const Plan> plan = prepare(4096, 1024, 1);
    CHECK(first->current_ordinal() == 0);
    CHECK(plan->device().info().ordinal == 1);

    const Arrays arrays =
        Arrays::make(plan->shared_device(), kiln::operators::make_linear_case(4, 4096, 1024, kSeed));
    CHECK(first->current_ordinal() == 0);
    CHECK(kiln::test::launch_linear(*plan, nullptr, 4, arrays.args()) == KILN_DECLINE_OTHER_DEVICE);
    well(plan->device().make_current());
    CHECK(kiln::test::launch_linear(*plan, nullptr, 4, arrays.args()) == KILN_OK);
    well(plan->device().synchronize(nullptr));
    well(first->make_current());
}
