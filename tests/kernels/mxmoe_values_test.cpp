// What fused_moe/mxmoe makes of unusual dimensions, ids and values, and of a workspace that served before.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mxmoe_cases.hpp"
#include "runtime/formats/bf16.hpp"

using namespace kiln;
using namespace kiln::kernels_test;
using operators::FusedMoeArrays;
using operators::FusedMoeProblem;
using operators::MxmoeSum;

namespace {

constexpr std::uint16_t kInfinity = 0x7f80;
constexpr std::uint16_t kNan = 0x7fc1;

tables::Constants constants(std::int64_t block_m, std::int64_t f16in, MxmoeSum sum, std::int64_t nt = 0) {
    return {{"block_m", block_m},
            {"f16in", f16in},
            {"g1_nt", nt},
            {"g2", static_cast<std::int64_t>(sum)},
            {"g2_nt", nt}};
}

constexpr FusedMoeProblem kSmall{.hidden = 256, .intermediate = 256, .experts = 16, .slots = 4};
constexpr std::int64_t kSmallM = 40;  // at most

// Both ways to quantise x, and all ways to sum.
std::vector<LoadedPipeline> load_kinds() {
    std::vector<operators::Pipeline> wanted;
    for (const tables::Constants& each :
         {constants(16, 1, MxmoeSum::atomic), constants(32, 0, MxmoeSum::combined),
          constants(16, 0, MxmoeSum::fused)}) {
        wanted.push_back(mxmoe_pipeline(kSmall, kSmallM, each));
    }
    return simulated_mxmoe().load(std::move(wanted));
}

std::span<const std::uint16_t> row(const std::vector<std::uint16_t>& out, std::int64_t token,
                                   std::int64_t hidden) {
    return std::span(out).subspan(static_cast<std::size_t>(token * hidden), static_cast<std::size_t>(hidden));
}

bool is_zero(std::uint16_t bits) {
    return (bits & 0x7fffu) == 0;
}
bool is_nan(std::uint16_t bits) {
    return (bits & 0x7fffu) > 0x7f80u;
}

}  // namespace

TEST_CASE("mxmoe values: the fewest and the most experts and slots, dimensions of odd and of many steps") {
    struct Shape {
        FusedMoeProblem problem;
        tables::Constants constants;
        std::int64_t m;
    };
    MxmoeDevice& device = simulated_mxmoe();
    const std::vector<Shape> shapes = {
        Shape{{256, 256, 1, 1}, constants(32, 0, MxmoeSum::fused), 37},
        Shape{{256, 256, 1024, 16}, constants(16, 0, MxmoeSum::combined, 1), 21},
        Shape{{768, 1280, 9, 3, false, true}, constants(128, 0, MxmoeSum::atomic), 50},
        Shape{{2304, 256, 40, 6, false, true}, constants(16, 1, MxmoeSum::atomic), 13}};
    std::vector<operators::Pipeline> wanted;
    for (const Shape& shape : shapes) {
        wanted.push_back(mxmoe_pipeline(shape.problem, shape.m, shape.constants));
    }
    const std::vector<LoadedPipeline> all = device.load(std::move(wanted));
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        const FusedMoeProblem& problem = shapes[i].problem;
        const std::int64_t m = shapes[i].m;
        const FusedMoeArrays arrays = operators::make_fused_moe_case(problem, m, 51);
        const LoadedMoe weights(device.device(), arrays);
        check_mxmoe_run(all[i], device.run(all[i], weights, arrays, m), arrays,
                        operators::mxmoe_reference(arrays), m);
    }
}

TEST_CASE("mxmoe values: more tiles than work-groups that a launch may have") {
    // 130 blocks of 16 columns' tiles in the first product, 2080 in all.
    const FusedMoeProblem problem{.hidden = 256, .intermediate = 2048, .experts = 3, .slots = 4};
    MxmoeDevice& device = simulated_mxmoe();
    const std::int64_t m = 520;
    const LoadedPipeline loaded =
        device.load_one(mxmoe_pipeline(problem, m, constants(16, 1, MxmoeSum::combined)));
    FusedMoeArrays arrays = routed(make_mxmoe_case(problem, m, 52), Routing::one_expert);
    REQUIRE(count_blocks(arrays, m, 16) * problem.intermediate / 128 > 2048);
    const LoadedMoe weights(device.device(), arrays);
    const MxmoeDevice::Run run = device.run(loaded, weights, arrays, m);
    CHECK(run.counts[loaded.find("g1")].front().work_groups == 2048);
    check_mxmoe_run(loaded, run, arrays, operators::mxmoe_reference(arrays), m);
}

TEST_CASE("mxmoe values: takes -1 for padding, and reports any other id that is no expert's") {
    MxmoeDevice& device = simulated_mxmoe();
    const std::int64_t m = 6;
    const auto kinds = load_kinds();
    const FusedMoeArrays whole = routed(make_mxmoe_case(kSmall, m, 53), Routing::three);
    const LoadedMoe weights(device.device(), whole);
    constexpr auto kMost = std::numeric_limits<std::int32_t>::max();
    for (const std::int32_t id : {-1, 16, -2, kMost, -kMost - 1}) {
        CAPTURE(id);
        FusedMoeArrays arrays = whole;
        for (const std::size_t pair : {2U, 9U, 23U}) {
            arrays.ids[pair] = id;
            arrays.weights[pair] = std::numeric_limits<float>::quiet_NaN();
        }
        const operators::MxmoeReference reference = operators::mxmoe_reference(arrays);
        for (const LoadedPipeline& loaded : kinds) {
            const MxmoeDevice::Run run = device.run(loaded, weights, arrays, m);
            check_mxmoe_run(loaded, run, arrays, reference, m);
            CHECK(run.flagged == (id != -1));
        }
    }
    // Nothing but padding: zeros, not what was there.
    FusedMoeArrays nothing = whole;
    std::ranges::fill(nothing.ids, -1);
    for (const LoadedPipeline& loaded : kinds) {
        const MxmoeDevice::Run run = device.run(loaded, weights, nothing, m);
        CHECK(std::ranges::all_of(run.out, is_zero));
        CHECK_FALSE(run.flagged);
        CHECK(run.margins_untouched);
        CHECK(run.counters_zero);
    }
}

TEST_CASE("mxmoe values: keeps a NaN, an infinity and zeros to their own tokens") {
    MxmoeDevice& device = simulated_mxmoe();
    const std::int64_t m = 8;
    const auto kinds = load_kinds();
    FusedMoeArrays arrays = routed(make_mxmoe_case(kSmall, m, 54), Routing::three);
    const auto x = [&arrays](std::int64_t token) { return arrays.x.begin() + token * arrays.ldx; };
    std::fill_n(x(5), kSmall.hidden, std::uint16_t{0x8000});
    const operators::MxmoeReference reference = operators::mxmoe_reference(arrays);
    x(1)[17] = kNan;
    x(3)[200] = kInfinity;
    const LoadedMoe weights(device.device(), arrays);
    for (const LoadedPipeline& loaded : kinds) {
        CAPTURE(loaded.pipeline.kernel_name);
        MxmoeDevice::Run run = device.run(loaded, weights, arrays, m);
        CHECK(std::ranges::all_of(row(run.out, 1, kSmall.hidden), is_nan));
        // A group with an infinity is as large as groups get.
        CHECK(std::ranges::all_of(row(run.out, 3, kSmall.hidden), [](std::uint16_t bits) {
            return !(std::fabs(formats::bf16_to_float(bits)) < 1e30F);
        }));
        CHECK(std::ranges::all_of(row(run.out, 5, kSmall.hidden), is_zero));
        // The rest as if these were not there.
        for (const std::int64_t token : {1, 3}) {
            const auto begin = static_cast<std::size_t>(token * kSmall.hidden);
            for (std::size_t i = begin; i < begin + static_cast<std::size_t>(kSmall.hidden); ++i) {
                run.out[i] = formats::float_to_bf16(reference.quantised[i]);
            }
        }
        check_mxmoe_run(loaded, run, arrays, reference, m);
    }
}

TEST_CASE("mxmoe values: rows of x lie side by side or far apart") {
    MxmoeDevice& device = simulated_mxmoe();
    const std::int64_t m = 9;
    const auto kinds = load_kinds();
    const FusedMoeArrays arrays = make_mxmoe_case(kSmall, m, 55);
    const operators::MxmoeReference reference = operators::mxmoe_reference(arrays);
    const LoadedMoe weights(device.device(), arrays);
    for (const std::int64_t ldx : {kSmall.hidden, std::int64_t{4104}}) {
        CAPTURE(ldx);
        FusedMoeArrays strided = arrays;
        strided.ldx = ldx;
        strided.x.assign(static_cast<std::size_t>(m * ldx), kNan);
        for (std::int64_t token = 0; token < m; ++token) {
            std::copy_n(arrays.x.begin() + token * arrays.ldx, kSmall.hidden,
                        strided.x.begin() + token * ldx);
        }
        for (const LoadedPipeline& loaded : kinds) {
            check_mxmoe_run(loaded, device.run(loaded, weights, strided, m), strided, reference, m);
        }
    }
}

TEST_CASE("mxmoe values: nothing depends on what a workspace held before") {
    MxmoeDevice& device = simulated_mxmoe();
    const std::int64_t most = kSmallM;
    MxmoeInputs inputs(device, kSmall, most, 56);
    const FusedMoeArrays& arrays = inputs.arrays(Routing::mixed);
    const operators::MxmoeReference& reference = inputs.reference(Routing::mixed);
    for (const LoadedPipeline& loaded : load_kinds()) {
        CAPTURE(loaded.pipeline.kernel_name);
        const auto check = [&](const MxmoeDevice::Run& run, std::int64_t m) {
            check_mxmoe_run(loaded, run, arrays, reference, m);
        };
        for (const auto layout : {MxmoeMemory::Layout::packed, MxmoeMemory::Layout::apart}) {
            MxmoeDevice::Run first, again;
            const MxmoeMemory memory(device.device(), loaded.pipeline, most, layout, 0x7f);
            first = device.run(loaded, inputs.weights(), arrays, most, memory);
            check(first, most);
            for (const std::int64_t m : {3, 17}) {
                again = device.run(loaded, inputs.weights(), arrays, m, memory);
                again.gaps_untouched = true;  // there are arrays of the launch before
                check(again, m);
            }
            again = device.run(loaded, inputs.weights(), arrays, most, memory);
            again.gaps_untouched = true;
            check(again, most);
            if (loaded.pipeline.is_deterministic()) {
                CHECK(again.out == first.out);
                const MxmoeMemory other(device.device(), loaded.pipeline, most, layout, 0x00);
                CHECK(device.run(loaded, inputs.weights(), arrays, most, other).out == first.out);
            }
        }
    }
}

TEST_CASE("mxmoe values: one scale that is off by one, of either product, is seen") {
    MxmoeDevice& device = simulated_mxmoe();
    const std::int64_t m = 4;
    const LoadedPipeline loaded = load_kinds().front();
    FusedMoeArrays arrays = routed(make_mxmoe_case(kSmall, m, 57), Routing::one_expert);
    const operators::MxmoeReference reference = operators::mxmoe_reference(arrays);
    operators::ExpertWeights& expert = arrays.experts.at(8);
    for (std::vector<std::uint8_t>* scales : {&expert.w13_scale, &expert.w2_scale}) {
        (*scales)[3] += 2;
        const LoadedMoe weights(device.device(), arrays);
        const auto out = device.run(loaded, weights, arrays, m).out;
        CHECK_FALSE(operators::compare_mxmoe(out, reference, m, kSmall.hidden).passed());
        (*scales)[3] -= 2;
    }
}
