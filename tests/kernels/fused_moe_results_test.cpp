// What fused_moe/small_m computes where constants, routing and values are unusual.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "fused_moe_device.hpp"

using namespace kiln;
using namespace kiln::kernels_test;
using operators::FusedMoeArrays;
using operators::FusedMoeProblem;

namespace {

constexpr std::uint16_t kInfinity = 0x7f80;
constexpr std::uint16_t kNan = 0x7fc1;

tables::Constants constants(std::int64_t columns, std::int64_t gate_up_waves, std::int64_t row_tiles,
                            std::int64_t down_waves) {
    return {{"columns", columns},
            {"gate_up_waves", gate_up_waves},
            {"row_tiles", row_tiles},
            {"down_waves", down_waves}};
}

bool is_nan(std::uint16_t bits) {
    return (bits & 0x7fffu) > 0x7f80u;
}

// Routes every pair to what `expert` says of (token, slot).
template <class Expert>
void route(FusedMoeArrays& arrays, const Expert& expert) {
    const std::int64_t slots = arrays.problem.slots;
    for (std::int64_t pair = 0; pair < arrays.m * slots; ++pair) {
        const auto at = static_cast<std::size_t>(pair);
        arrays.ids[at] = static_cast<std::int32_t>(expert(pair / slots, pair % slots));
        arrays.weights[at] = 0.25F + static_cast<float>(pair % 7) / 8;
    }
    operators::add_experts(arrays);
}

// Runs twice, with other contents of the scratch, and compares with the reference and with each other.
void check_run(const LoadedMoe& loaded, const Built& built, const FusedMoeArrays& arrays, std::int64_t m,
               const std::vector<std::uint16_t>& reference) {
    INFO(built.specialisation.kernel_name, ", m ", m, ", seed ", arrays.seed);
    const LoadedMoe::Run run = loaded.run(built, arrays, m);
    const auto comparison = operators::compare_fused_moe(run.out, reference, m, arrays.problem.hidden);
    CHECK(comparison.error < kMoeTokenBound);
    CHECK(relative_l2(run.out, reference) < kMoeBound);
    CHECK(run.margins_untouched);
    CHECK(run.flagged == operators::has_invalid_id(arrays, m));
    CHECK(loaded.run(built, arrays, m, 0x7f).out == run.out);
}

struct Layout {
    FusedMoeProblem problem;
    std::int64_t max_m;
    tables::Constants constants;
    std::vector<std::int64_t> ms;
};

void check_layouts(const std::vector<Layout>& layouts) {
    const auto device = open_simulator();
    std::vector<operators::Specialisation> wanted;
    for (const Layout& layout : layouts) {
        wanted.push_back(specialise_fused_moe(layout.problem, layout.max_m, layout.constants));
    }
    const std::vector<Built> all = build(std::move(wanted));
    for (std::size_t i = 0; i < layouts.size(); ++i) {
        const Layout& layout = layouts[i];
        const FusedMoeArrays arrays = operators::make_fused_moe_case(layout.problem, layout.max_m, 11 + i);
        const std::vector<std::uint16_t> reference = operators::fused_moe_reference(arrays);
        const LoadedMoe loaded(*device, arrays);
        for (const std::int64_t m : layout.ms) {
            check_run(loaded, all[i], arrays, m, reference);
        }
    }
}

}  // namespace

TEST_CASE("results: fused_moe with few and many experts, 4 to 16 slots, at M around every tile of tokens") {
    check_layouts({
        {{512, 256, 16, 11, false}, 40, constants(16, 4, 1, 4), {1, 3, 8, 15, 16, 17, 31, 32, 33, 40}},
        {{512, 256, 513, 11, false}, 40, constants(16, 4, 1, 16), {2, 20, 40}},
        {{256, 128, 513, 10, true}, 48, constants(16, 2, 2, 8), {1, 16, 17, 48}},
        {{256, 128, 257, 9, true}, 20, constants(8, 1, 1, 4), {1, 3, 20}},
        {{256, 128, 129, 4, false}, 64, constants(16, 2, 4, 5), {1, 48, 49, 64}},
        {{256, 128, 1024, 16, false}, 44, constants(8, 2, 1, 7), {5, 44}},
        {{256, 128, 128, 11, true}, 64, constants(16, 2, 1, 16), {64}},
    });
}

TEST_CASE("results: fused_moe at one token: columns across experts, halves of a fragment, any waves") {
    check_layouts({
        {{512, 256, 16, 11, false}, 1, constants(11, 4, 4, 11), {1}},
        {{512, 64, 17, 16, false}, 1, constants(5, 1, 8, 3), {1}},
        {{384, 192, 384, 9, false}, 1, constants(7, 3, 1, 16), {1}},
        {{512, 64, 256, 4, false}, 1, constants(1, 2, 2, 1), {1}},
        {{256, 256, 16, 11, false}, 1, constants(16, 2, 1, 2), {1}},
        {{256, 256, 16, 11, true}, 1, constants(8, 1, 2, 4), {1}},
        {{256, 384, 16, 5, true}, 1, constants(16, 2, 4, 5), {1}},
    });
}

TEST_CASE("results: fused_moe with gate and up rows of w13 in turn") {
    const auto interleaved = [](std::int64_t hidden, std::int64_t intermediate, std::int64_t experts) {
        return FusedMoeProblem{hidden, intermediate, experts, 6, false, true};
    };
    check_layouts({
        {interleaved(512, 256, 16), 20, constants(16, 4, 1, 4), {1, 17, 20}},
        {interleaved(384, 192, 33), 8, constants(8, 1, 2, 4), {8}},
        {interleaved(256, 64, 16), 1, constants(7, 1, 1, 4), {1}},
        {interleaved(256, 128, 16), 1, constants(8, 2, 4, 6), {1}},
    });
}

TEST_CASE("results: fused_moe where intermediate is no multiple of 128, and where there are many blocks") {
    check_layouts({
        {{128, 64, 16, 8, false}, 8, constants(16, 1, 1, 8), {1, 8}},
        {{256, 192, 16, 8, false}, 20, constants(8, 2, 2, 4), {7, 20}},
        {{1152, 576, 8, 6, false}, 16, constants(16, 3, 8, 4), {16}},
        {{2048, 1024, 8, 4, false}, 16, constants(16, 1, 1, 16), {16}},
        {{1024, 1024, 8, 4, true}, 33, constants(8, 1, 1, 16), {33}},
    });
}

TEST_CASE("results: fused_moe with all pairs on one expert, and with every pair on its own") {
    const auto device = open_simulator();
    for (const bool fp8 : {false, true}) {
        const FusedMoeProblem problem = {256, 128, 257, 11, fp8};
        const std::vector<Built> all =
            build({specialise_fused_moe(problem, 20, constants(16, 2, 1, 8)),
                   specialise_fused_moe(problem, 1, constants(fp8 ? 8 : 6, 2, 4, 11))});
        FusedMoeArrays arrays = operators::make_fused_moe_case(problem, 20, 5);
        const auto check = [&](const char* what) {
            INFO(what);
            const std::vector<std::uint16_t> reference = operators::fused_moe_reference(arrays);
            const LoadedMoe loaded(*device, arrays);
            check_run(loaded, all[0], arrays, 20, reference);
            check_run(loaded, all[1], arrays, 1, reference);
        };
        route(arrays, [](std::int64_t, std::int64_t) { return 7; });
        check("one expert");
        route(arrays, [](std::int64_t token, std::int64_t slot) { return 11 * token + slot; });
        check("every pair on its own");
        route(arrays,
              [](std::int64_t token, std::int64_t slot) { return slot == 10 ? 256 : token % 2 + slot; });
        check("a shared expert in the last slot");
    }
}

TEST_CASE("results: fused_moe takes -1 for padding, and reports any other id that is no expert's") {
    const auto device = open_simulator();
    const FusedMoeProblem problem = {256, 128, 16, 4, false};
    const std::vector<Built> all = build({specialise_fused_moe(problem, 4, constants(16, 2, 1, 4)),
                                          specialise_fused_moe(problem, 1, constants(2, 2, 4, 4))});
    FusedMoeArrays arrays = operators::make_fused_moe_case(problem, 4, 6);
    route(arrays, [](std::int64_t, std::int64_t slot) { return 3 * slot; });
    const LoadedMoe loaded(*device, arrays);
    for (const std::int32_t id :
         {-1, 16, -2, std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min()}) {
        for (const Built& built : all) {
            const std::int64_t m = built.specialisation.bucket.max_m;
            CAPTURE(id);
            CAPTURE(m);
            FusedMoeArrays changed = arrays;
            const auto pair = static_cast<std::size_t>(4 * m - 2);  // the last token's third slot
            changed.ids[pair] = id;
            changed.weights[pair] = std::numeric_limits<float>::quiet_NaN();
            check_run(loaded, built, changed, m, operators::fused_moe_reference(changed));
            CHECK(loaded.run(built, changed, m).flagged == (id != -1));
        }
    }
    // Nothing but padding: zeros, not what was there.
    route(arrays, [](std::int64_t, std::int64_t) { return -1; });
    for (const Built& built : all) {
        const LoadedMoe::Run run = loaded.run(built, arrays, built.specialisation.bucket.max_m);
        CHECK(std::ranges::all_of(run.out, [](std::uint16_t bits) { return bits == 0; }));
        CHECK_FALSE(run.flagged);
    }
}

TEST_CASE("results: fused_moe keeps a NaN, an infinity and -0 to their own tokens") {
    const auto device = open_simulator();
    for (const bool fp8 : {false, true}) {
        const FusedMoeProblem problem = {256, 128, 8, 4, fp8};
        const std::vector<Built> all = build({specialise_fused_moe(problem, 8, constants(16, 2, 1, 4))});
        FusedMoeArrays arrays = operators::make_fused_moe_case(problem, 8, 8);
        route(arrays, [](std::int64_t token, std::int64_t slot) { return (token + slot) % 8; });
        const std::vector<std::uint16_t> reference = operators::fused_moe_reference(arrays);
        const auto row = [&](std::int64_t token) { return arrays.x.begin() + token * arrays.ldx; };
        row(1)[17] = kNan;
        row(3)[200] = kInfinity;
        std::fill_n(row(5), problem.hidden, std::uint16_t{0x8000});
        const LoadedMoe loaded(*device, arrays);
        const LoadedMoe::Run run = loaded.run(all.front(), arrays, 8);
        for (std::int64_t token = 0; token < 8; ++token) {
            const auto begin = run.out.begin() + token * problem.hidden;
            const auto end = begin + problem.hidden;
            if (token == 1) {
                CHECK(std::all_of(begin, end, is_nan));
            } else if (token == 3) {
                CHECK(
                    std::none_of(begin, end, [](std::uint16_t bits) { return (bits & 0x7f80u) != 0x7f80u; }));
            } else if (token == 5) {
                CHECK(std::all_of(begin, end, [](std::uint16_t bits) { return (bits & 0x7fffu) == 0; }));
            } else {
                CHECK(operators::compare_fused_moe(
                          std::vector<std::uint16_t>(begin, end),
                          std::vector<std::uint16_t>(reference.begin() + token * problem.hidden,
                                                     reference.begin() + (token + 1) * problem.hidden),
                          1, problem.hidden)
                          .error < kMoeTokenBound);
            }
        }
    }
}

TEST_CASE("results: fused_moe at every M up to the public kernels' last ones") {
    std::vector<std::int64_t> ms(48);
    std::iota(ms.begin(), ms.end(), 1);
    check_layouts({
        {{128, 64, 16, 11, false}, 40, constants(16, 1, 4, 4), {ms.begin(), ms.begin() + 40}},
        {{128, 128, 16, 11, true}, 48, constants(16, 1, 4, 4), ms},
    });
}

TEST_CASE("results: fused_moe computes the same in every order and with stores seen as late as they may be") {
    const auto device = open_simulator();
    for (const bool fp8 : {false, true}) {
        const FusedMoeProblem problem = {256, 128, 33, 9, fp8};
        const std::vector<Built> all =
            build({specialise_fused_moe(problem, 20, constants(16, 2, 2, 8)),
                   specialise_fused_moe(problem, 1, constants(fp8 ? 8 : 5, 2, 2, 4))});
        const FusedMoeArrays arrays = operators::make_fused_moe_case(problem, 20, 12);
        const std::vector<std::uint16_t> reference = operators::fused_moe_reference(arrays);
        const LoadedMoe loaded(*device, arrays);
        for (const Built& built : all) {
            const std::int64_t m = built.specialisation.bucket.max_m;
            check_run(loaded, built, arrays, m, reference);
            const std::vector<std::uint16_t> expected = loaded.run(built, arrays, m).out;
            for (const char* order : {"ascending", "descending", "shuffle:5", "interleave:5"}) {
                for (const char* scopes : {"early", "late"}) {
                    CAPTURE(std::string(order));
                    CAPTURE(std::string(scopes));
                    device::SimulationRules rules;
                    rules.order = order;
                    rules.scopes = scopes;
                    rules.checks = "all";
                    REQUIRE(device->set_rules(rules));
                    CHECK(loaded.run(built, arrays, m).out == expected);
                }
            }
            REQUIRE(device->set_rules({}));
        }
    }
}

TEST_CASE("results: fused_moe sees one scale that is off by one") {
    const auto device = open_simulator();
    const FusedMoeProblem problem = {256, 128, 8, 4, false};
    const std::vector<Built> all = build({specialise_fused_moe(problem, 4, constants(16, 2, 1, 4))});
    FusedMoeArrays arrays = operators::make_fused_moe_case(problem, 4, 9);
    route(arrays, [](std::int64_t, std::int64_t slot) { return slot; });
    const std::vector<std::uint16_t> reference = operators::fused_moe_reference(arrays);
    ++arrays.experts.at(0).w13_scale[0];  // of row 0
    const LoadedMoe loaded(*device, arrays);
    const auto comparison =
        operators::compare_fused_moe(loaded.run(all.front(), arrays, 4).out, reference, 4, 256);
    CHECK(comparison.error > kMoeBound);
}
