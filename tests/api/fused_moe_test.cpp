// fused_moe through kiln.hpp, as an engine would use it: weights quantised and shuffled by formats.hpp, every
// way to decline, one launch and its replay.
#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "kiln/formats.hpp"
#include "kiln/kiln.hpp"
#include "runtime/formats/bf16.hpp"
#include "runtime/formats/e2m1.hpp"
#include "runtime/formats/e8m0.hpp"
#include "tests/api/simulator.hpp"

using kiln::Dtype;
using kiln::FusedMoe;
using kiln::test::DeviceVector;
using kiln::test::Driver;

namespace {

constexpr unsigned kSeed = 314;
constexpr std::int64_t kHidden = 128, kIntermediate = 64, kExperts = 4, kSlots = 2, kTokens = 3;

const FusedMoe kServed{.hidden = 4096, .intermediate = 256, .experts = 513, .slots = 11};
const FusedMoe kSmall{.hidden = kHidden, .intermediate = kIntermediate, .experts = kExperts, .slots = kSlots};

const char* const kTable = R"({"schema": 1, "rows": [{"operator": "fused_moe",
    "problem": {"hidden": 128, "intermediate": 64, "experts": 4, "slots": 2, "weights": "mxfp4"},
    "target": "gfx950", "provenance": {"kind": "untuned"}, "buckets": [{"max_m": 4, "template": "fused_moe/small_m",
    "constants": {"columns": 16, "gate_up_waves": 1, "row_tiles": 1, "down_waves": 4}}]}]})";

std::int32_t declines(void (*change)(FusedMoe&)) {
    kiln::test::shared_cache();
    static const auto service = kiln::Service::open();
    FusedMoe problem = kServed;
    change(problem);
    return service.supports(KILN_NO_DEVICE, problem).decline();
}

// bf16 weights [experts, rows, k] as mxfp4: what the launch takes, and what that is worth.
struct Mxfp4 {
    std::vector<std::uint8_t> codes, scales;
    std::vector<double> values;

    Mxfp4(std::int64_t rows, std::int64_t k, std::mt19937& random) {
        const std::int64_t all = kExperts * rows;
        std::normal_distribution<float> normal(0.0f, 0.1f);
        std::vector<std::uint16_t> w(static_cast<std::size_t>(all * k));
        for (std::uint16_t& bits : w) {
            bits = kiln::formats::float_to_bf16(normal(random));
        }
        std::vector<std::uint8_t> plain(w.size() / 2), plain_scales(w.size() / 32);
        REQUIRE(kiln::quantise_1x32({w.data(), all, k, k}, Dtype::e2m1, kiln::AmaxFloor::none, plain.data(),
                                    plain_scales.data()));
        for (std::size_t i = 0; i < w.size(); ++i) {
            values.push_back(
                static_cast<double>(kiln::formats::e2m1_to_float(kiln::formats::e2m1_at(plain, i))) *
                static_cast<double>(kiln::formats::e8m0_to_float(plain_scales[i / 32])));
        }
        const auto order = kiln::RowOrder::as_they_are;
        codes.resize(plain.size());
        REQUIRE(kiln::shuffle_weights(plain.data(), {kExperts, rows, k / 2}, order, codes.data()));
        const kiln::ByteMatrix groups{kExperts, rows, k / 32};
        scales.resize(static_cast<std::size_t>(kiln::shuffled_scales_bytes(groups)));
        REQUIRE(kiln::shuffle_scales(plain_scales.data(), groups, order, scales.data()));
    }
};

double rounded(double value) {
    return kiln::formats::bf16_to_float(kiln::formats::double_to_bf16(value));
}

}  // namespace

TEST_CASE("fused_moe: shipped rows are served, and every guard declines with its reason") {
    CHECK(declines([](FusedMoe&) {}) == 0);
    CHECK(declines([](FusedMoe& f) {
              f.weights = kiln::MoeWeights::fp8;
              f.activation = kiln::Activation::silu;
              f.x_type = f.out_type = Dtype::bf16;
              f.w_layout = kiln::WeightLayout::preshuffled;
          }) == 0);
    CHECK(declines([](FusedMoe& f) { f.experts = 512; }) == KILN_DECLINE_SHAPE);
    CHECK(declines([](FusedMoe& f) { f.hidden = 4000; }) == KILN_DECLINE_DIMENSIONS);
    CHECK(declines([](FusedMoe& f) { f.weights = kiln::MoeWeights::bf16; }) == KILN_DECLINE_W_TYPE);
    CHECK(declines([](FusedMoe& f) { f.weights = kiln::MoeWeights::fp8_fnuz; }) == KILN_DECLINE_W_TYPE);
    CHECK(declines([](FusedMoe& f) { f.weights = kiln::MoeWeights::mxfp8; }) == KILN_DECLINE_W_TYPE);
    CHECK(declines([](FusedMoe& f) { f.weights = kiln::MoeWeights::int4; }) == KILN_DECLINE_W_TYPE);
    CHECK(declines([](FusedMoe& f) { f.weights = kiln::MoeWeights::fp8_per_tensor; }) ==
          KILN_DECLINE_W_SCALE_SHAPE);
    CHECK(declines([](FusedMoe& f) { f.weights = kiln::MoeWeights::fp8_per_row; }) ==
          KILN_DECLINE_W_SCALE_SHAPE);
    CHECK(declines([](FusedMoe& f) { f.activation = kiln::Activation::gelu; }) == KILN_DECLINE_ACTIVATION);
    CHECK(declines([](FusedMoe& f) { f.activation = kiln::Activation::swiglu_clamped; }) ==
          KILN_DECLINE_ACTIVATION);
    CHECK(declines([](FusedMoe& f) { f.x_type = Dtype::fp16; }) == KILN_DECLINE_X_TYPE);
    CHECK(declines([](FusedMoe& f) { f.out_type = Dtype::fp32; }) == KILN_DECLINE_OUT_TYPE);
    CHECK(declines([](FusedMoe& f) { f.w_layout = kiln::WeightLayout::row_major; }) == KILN_DECLINE_W_LAYOUT);
    CHECK(declines([](FusedMoe& f) { f.w_scale_layout_other = true; }) == KILN_DECLINE_W_SCALE_LAYOUT);
    CHECK(declines([](FusedMoe& f) { f.w_scale_strided = true; }) == KILN_DECLINE_W_SCALE_STRIDE);
    CHECK(declines([](FusedMoe& f) { f.x_quantised = true; }) == KILN_DECLINE_X_QUANTISED);
    CHECK(declines([](FusedMoe& f) { f.bias = true; }) == KILN_DECLINE_BIAS);
    CHECK(declines([](FusedMoe& f) { f.expert_mask = true; }) == KILN_DECLINE_EXPERT_MASK);
    CHECK(declines([](FusedMoe& f) { f.doweight_stage1 = true; }) == KILN_DECLINE_WEIGHTED_STAGE_1);
    CHECK(declines([](FusedMoe& f) { f.no_combine = true; }) == KILN_DECLINE_NOT_COMBINED);
    CHECK(declines([](FusedMoe& f) { f.num_local_tokens = true; }) == KILN_DECLINE_LOCAL_TOKENS);
    CHECK(declines([](FusedMoe& f) { f.x_inner_stride = 2; }) == KILN_DECLINE_X_INNER_STRIDE);
    CHECK(declines([](FusedMoe& f) { f.deterministic = true; }) == 0);  // a demand that every bucket meets
    CHECK(declines([](FusedMoe& f) { f.gate_up = kiln::GateUp::separated; }) == 0);
    CHECK(declines([](FusedMoe& f) {
              f.weights = kiln::MoeWeights::fp8;
              f.gate_up = kiln::GateUp::interleaved;
          }) == KILN_DECLINE_W_LAYOUT);
    FusedMoe unknown = kServed;
    unknown.gate_up = static_cast<kiln::GateUp>(3);
    CHECK(kiln::Service::open().supports(KILN_NO_DEVICE, unknown).error_code() ==
          KILN_ERROR_INVALID_ARGUMENT);
    unknown = kServed;
    unknown.activation = static_cast<kiln::Activation>(9);
    CHECK(kiln::Service::open().supports(KILN_NO_DEVICE, unknown).error_code() ==
          KILN_ERROR_INVALID_ARGUMENT);
}

TEST_CASE("fused_moe: what an engine prepares by formats.hpp gives what the definition says") {
    kiln::test::shared_cache();
    const kiln::test::Folder folder;
    const std::string shapes = folder.write("table.json", kTable);
    auto service = kiln::Service::open({.shapes_path = shapes.c_str(), .device = "sim"});
    const auto plan = service.prepare(0, kSmall);
    REQUIRE_MESSAGE(plan, plan.failure().message);
    CHECK(plan.max_m() == 4);
    CHECK(plan.kernel_name(3) == std::string("kiln_fused_moe_mxfp4_h128_i64_e4_s2_m4"));

    INFO("seed ", kSeed);
    std::mt19937 random(kSeed);
    const Mxfp4 w13(2 * kIntermediate, kHidden, random), w2(kHidden, kIntermediate, random);
    std::vector<std::uint16_t> x(kTokens * kHidden);
    std::normal_distribution<float> normal;
    for (std::uint16_t& bits : x) {
        bits = kiln::formats::float_to_bf16(normal(random));
    }
    const std::vector<std::int32_t> ids{2, 0, -1, 2, 3, 3};
    const std::vector<float> weights{0.75f, 0.25f, std::nanf(""), 1.5f, 0.5f, -0.25f};

    const DeviceVector<std::uint16_t> device_x(x), out(std::vector<std::uint16_t>(x.size(), 0xffff));
    const DeviceVector<std::uint8_t> device_w13(w13.codes), device_w2(w2.codes), s13(w13.scales),
        s2(w2.scales);
    const DeviceVector<std::int32_t> device_ids(ids), flag(std::vector<std::int32_t>{0});
    const DeviceVector<float> device_weights(weights);
    const std::int64_t bytes = plan.workspace_bytes(kTokens);
    const DeviceVector<std::uint8_t> workspace(std::vector<std::uint8_t>(static_cast<std::size_t>(bytes)));
    REQUIRE(plan.init_workspace(nullptr, workspace.get(), bytes));
    const FusedMoe::Args args{.x = device_x.get(),
                              .ldx = kHidden,
                              .w13 = device_w13.get(),
                              .w13_scale = s13.get(),
                              .w2 = device_w2.get(),
                              .w2_scale = s2.get(),
                              .ids = device_ids.get(),
                              .weights = device_weights.get(),
                              .out = out.get(),
                              .invalid_id = flag.get(),
                              .workspace = workspace.get()};
    const kiln::Status status = plan.launch(nullptr, kTokens, args);
    REQUIRE_MESSAGE(status, status.text());
    CHECK(flag.read().front() == 0);
    CHECK(plan.launch(nullptr, 0, {}));
    CHECK(plan.launch(nullptr, 5, args).decline() == KILN_DECLINE_M_TOO_LARGE);

    double gap = 0, size = 0;
    const std::vector<std::uint16_t> found = out.read();
    for (std::int64_t m = 0; m < kTokens; ++m) {
        std::vector<double> sum(kHidden);
        for (std::int64_t s = 0; s < kSlots; ++s) {
            const std::int64_t e = ids[static_cast<std::size_t>(m * kSlots + s)];
            if (e < 0) {
                continue;
            }
            std::vector<double> h;
            for (std::int64_t i = 0; i < kIntermediate; ++i) {
                double g = 0, u = 0;
                for (std::int64_t k = 0; k < kHidden; ++k) {
                    const double value =
                        kiln::formats::bf16_to_float(x[static_cast<std::size_t>(m * kHidden + k)]);
                    const std::int64_t gate = (e * 2 * kIntermediate + i) * kHidden + k;
                    g += value * w13.values[static_cast<std::size_t>(gate)];
                    u += value * w13.values[static_cast<std::size_t>(gate + kIntermediate * kHidden)];
                }
                h.push_back(rounded(g / (1 + std::exp(-g)) * u));
            }
            for (std::int64_t n = 0; n < kHidden; ++n) {
                double dot = 0;
                for (std::int64_t i = 0; i < kIntermediate; ++i) {
                    dot += h[static_cast<std::size_t>(i)] *
                           w2.values[static_cast<std::size_t>((e * kHidden + n) * kIntermediate + i)];
                }
                sum[static_cast<std::size_t>(n)] +=
                    static_cast<double>(weights[static_cast<std::size_t>(m * kSlots + s)]) * dot;
            }
        }
        for (std::int64_t n = 0; n < kHidden; ++n) {
            const double wanted = rounded(sum[static_cast<std::size_t>(n)]);
            const double got = kiln::formats::bf16_to_float(found[static_cast<std::size_t>(m * kHidden + n)]);
            gap += (got - wanted) * (got - wanted);
            size += wanted * wanted;
        }
    }
    CHECK(size > 0);
    CHECK(std::sqrt(gap / size) < 5e-4);
}
