// What linear/small_m computes where constants and inputs are unusual. The shipped problems are judged with
// their counts.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device.hpp"
#include "runtime/formats/bf16.hpp"
#include "runtime/formats/e4m3.hpp"
#include "runtime/formats/quantise.hpp"
#include "runtime/formats/weight_layout.hpp"
#include "runtime/operators/linear_reference.hpp"
#include "shipped.hpp"

using namespace kiln;
using namespace kiln::kernels_test;

namespace {

constexpr std::uint16_t kInfinity = 0x7f80;
constexpr std::uint16_t kNan = 0x7fc1;

bool is_nan(std::uint16_t bits) {
    return (bits & 0x7fffu) > 0x7f80u;
}

// Rows of x further apart than K, with NaN between them: nothing there may be read into a result.
operators::LinearArrays padded(const operators::LinearArrays& arrays, std::int64_t ldx) {
    operators::LinearArrays result = arrays;
    result.ldx = ldx;
    result.x.assign(static_cast<std::size_t>(arrays.m * ldx), kNan);
    for (std::int64_t row = 0; row < arrays.m; ++row) {
        std::copy_n(arrays.x.begin() + row * arrays.ldx, arrays.k, result.x.begin() + row * ldx);
    }
    return result;
}

struct Layout {
    std::int64_t n, k, max_m;
    tables::Constants constants;
};

tables::Constants gfx950(std::int64_t tiles_n, std::int64_t waves, std::int64_t lane_rows,
                         std::int64_t blocks_ahead) {
    return {{"tiles_n", tiles_n}, {"waves", waves}, {"lane_rows", lane_rows}, {"blocks_ahead", blocks_ahead}};
}
struct Sm90a {
    std::int64_t split_k = 1, tiles_n = 1, warp_tiles = 1, warps_k = 1, steps = 1, stages = 1,
                 early_steps = 1;

    operator tables::Constants() const {
        return {{"split_k", split_k}, {"tiles_n", tiles_n}, {"warp_tiles", warp_tiles},  {"warps_k", warps_k},
                {"steps", steps},     {"stages", stages},   {"early_steps", early_steps}};
    }
};

std::vector<Layout> unusual_layouts(std::string_view processor) {
    if (processor == "sm_90a") {
        return {
            // One warp that computes, one step, no cluster.
            {16, 128, 1, Sm90a{}},
            // Work-groups that lie across two weight scales; an odd number of tiles; a ring that turns.
            {240, 768, 5, Sm90a{.split_k = 2, .tiles_n = 5, .steps = 3, .stages = 2, .early_steps = 1}},
            // More work-groups in a cluster than halves of a tile: some own no columns.
            {16, 1024, 8, Sm90a{.split_k = 8}},
            // Halves that do not divide among the work-groups; two groups of tokens, one token in the second.
            {48, 1024, 9, Sm90a{.split_k = 4, .tiles_n = 3, .warp_tiles = 3, .warps_k = 2}},
            // Warps side by side in both directions; stages of several k blocks.
            {64, 2048, 12,
             Sm90a{.split_k = 2,
                   .tiles_n = 4,
                   .warp_tiles = 2,
                   .warps_k = 2,
                   .steps = 4,
                   .stages = 3,
                   .early_steps = 2}},
            // As many warps as there may be, all of them along K, then all along N.
            {32, 2048, 24,
             Sm90a{.tiles_n = 2, .warp_tiles = 2, .warps_k = 16, .steps = 4, .stages = 4, .early_steps = 4}},
            {256, 512, 32, Sm90a{.split_k = 2, .tiles_n = 16, .steps = 2, .stages = 1}},
            // A last cluster and a last warp with fewer tiles, in rings and without.
            {208, 768, 16,
             Sm90a{.split_k = 2, .tiles_n = 5, .warp_tiles = 2, .steps = 3, .stages = 2, .early_steps = 2}},
            {112, 512, 8,
             Sm90a{.tiles_n = 6, .warp_tiles = 4, .warps_k = 4, .steps = 4, .stages = 4, .early_steps = 1}},
            // As many tiles as there may be; then most tokens.
            {512, 256, 17, Sm90a{.tiles_n = 32, .warp_tiles = 2, .steps = 2, .stages = 2, .early_steps = 1}},
            {32, 512, 64, Sm90a{.warps_k = 2, .steps = 2, .stages = 2, .early_steps = 2}},
        };
    }
    return {
        // One wave, no LDS.
        {16, 128, 1, gfx950(1, 1, 4, 1)},
        // Work-groups that lie across two weight scales; an odd number of tiles.
        {240, 768, 5, gfx950(5, 2, 8, 1)},
        // Three blocks ahead of six; four tokens.
        {64, 1536, 4, gfx950(2, 2, 4, 3)},
        // Scales of four blocks together, twice, through a ring.
        {64, 2048, 3, gfx950(1, 2, 4, 4)},
        // More fragments than waves; three tiles of M.
        {256, 384, 48, gfx950(2, 3, 16, 1)},
        // Four tiles of M; then eight tiles of N, and a bucket with fewer tokens than lane rows.
        {32, 512, 64, gfx950(1, 4, 16, 1)},
        {128, 512, 7, gfx950(8, 4, 8, 1)},
    };
}

// Constants for n = k = 512, one for each way to quantise.
std::vector<Layout> quantising_layouts(std::string_view processor) {
    if (processor == "sm_90a") {
        return {{512, 512, 4, Sm90a{.tiles_n = 2, .steps = 4, .stages = 4, .early_steps = 2}},
                {512, 512, 8, Sm90a{.split_k = 2, .tiles_n = 4, .steps = 2, .stages = 2}},
                {512, 512, 32, Sm90a{.split_k = 4, .tiles_n = 4, .warp_tiles = 2}}};
    }
    return {{512, 512, 4, gfx950(2, 2, 4, 2)},
            {512, 512, 8, gfx950(2, 2, 8, 2)},
            {512, 512, 32, gfx950(2, 2, 16, 2)}};
}

std::vector<Layout> small_layouts(std::string_view processor) {
    if (processor == "sm_90a") {
        return {{32, 256, 6, Sm90a{.warps_k = 2}}, {32, 256, 6, Sm90a{.split_k = 2, .tiles_n = 2}}};
    }
    return {{32, 256, 6, gfx950(1, 2, 8, 1)}, {32, 256, 6, gfx950(1, 2, 16, 1)}};
}

std::string processor_of(const device::Device& device) {
    return tables::parse_target(device.info().target)->processor;
}

std::vector<Built> build_all(const std::vector<Layout>& layouts, std::string_view processor) {
    std::vector<operators::Specialisation> wanted;
    for (const Layout& layout : layouts) {
        wanted.push_back(specialise_linear(layout.n, layout.k, layout.max_m, layout.constants, processor));
    }
    return build(std::move(wanted));
}

}  // namespace

TEST_CASE("results: every way to lay out the work gives the same numbers") {
    const auto device = open_device();
    if (device == nullptr) {
        return;
    }
    const std::string processor = processor_of(*device);
    const std::vector<Layout> layouts = unusual_layouts(processor);
    const std::vector<Built> all = build_all(layouts, processor);
    for (std::size_t i = 0; i < all.size(); ++i) {
        const Layout& layout = layouts[i];
        const std::uint64_t seed = 40 + i;
        CAPTURE(all[i].specialisation.kernel_name);
        CAPTURE(seed);
        const auto arrays =
            padded(operators::make_linear_case(layout.max_m, layout.n, layout.k, seed), layout.k + 24);
        const auto reference = operators::linear_reference(arrays);
        const LoadedCase loaded(*device, arrays);
        for (const std::int64_t m : {std::int64_t{1}, (layout.max_m + 1) / 2, layout.max_m}) {
            CAPTURE(m);
            const auto run = loaded.run(all[i], m);
            const auto comparison = operators::compare_linear(run.out, reference, m, layout.n);
            CHECK(comparison.too_far == 0);
            CHECK(comparison.differing <=
                  2 + static_cast<std::size_t>(2e-3 * static_cast<double>(comparison.outputs)));
            CHECK(run.past_end_untouched);
        }
    }
}

TEST_CASE("results: one-hot weights and unit scales show the quantiser's bytes, bit for bit") {
    const std::int64_t n = 512, k = 512;
    const auto device = open_device();
    if (device == nullptr) {
        return;
    }
    const std::string processor = processor_of(*device);
    constexpr std::uint8_t kOne = 0x38;
    for (const Built& built : build_all(quantising_layouts(processor), processor)) {
        const std::int64_t m = built.specialisation.bucket.max_m;
        const std::uint64_t seed = 60;
        CAPTURE(m);
        CAPTURE(seed);
        auto arrays = operators::make_linear_case(m, n, k, seed);
        for (std::int64_t i = 0; i < 128;
             ++i) {  // every magnitude of a binade, for ties; below it, down to nothing
            arrays.x[static_cast<std::size_t>(i)] =
                static_cast<std::uint16_t>(0x4300 + (i % 2 == 0 ? i : -64 * i));
        }
        arrays.w.assign(static_cast<std::size_t>(n * k), 0);
        for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
            arrays.w[formats::l1_offset(i, i, static_cast<std::size_t>(k))] = kOne;
        }
        std::fill(arrays.w_scale.begin(), arrays.w_scale.end(), 1.0F);

        const auto run = LoadedCase(*device, arrays).run(built, m);
        std::vector<std::uint8_t> q(static_cast<std::size_t>(k));
        std::vector<float> scales(static_cast<std::size_t>(k / 128));
        for (std::int64_t row = 0; row < m; ++row) {
            formats::quantise_1x128({arrays.x.data() + row * arrays.ldx, static_cast<std::size_t>(k)}, q,
                                    scales);
            for (std::int64_t i = 0; i < n; ++i) {
                const auto at = static_cast<std::size_t>(i);
                // A sum of products starts from +0, so no output is -0.
                const float expected = formats::e4m3_to_float(q[at]) * scales[at / 128] + 0.0F;
                CAPTURE(row);
                CAPTURE(i);
                REQUIRE(run.out[static_cast<std::size_t>(row * n + i)] == formats::float_to_bf16(expected));
            }
        }
    }
}

TEST_CASE("results: an infinity or a NaN makes a NaN of its own row, and of no other") {
    const std::int64_t m = 6, n = 32, k = 256;
    const auto device = open_device();
    if (device == nullptr) {
        return;
    }
    const std::string processor = processor_of(*device);
    auto arrays = operators::make_linear_case(m, n, k, 77);
    const auto reference = operators::linear_reference(arrays);
    arrays.x[static_cast<std::size_t>(1 * arrays.ldx + 200)] = kInfinity;
    arrays.x[static_cast<std::size_t>(4 * arrays.ldx + 3)] = kNan;
    const LoadedCase loaded(*device, arrays);
    for (const Built& built : build_all(small_layouts(processor), processor)) {
        const auto run = loaded.run(built, m);
        for (std::int64_t row = 0; row < m; ++row) {
            CAPTURE(row);
            const std::span<const std::uint16_t> out(run.out.data() + row * n, static_cast<std::size_t>(n));
            if (row == 1 || row == 4) {
                CHECK(std::all_of(out.begin(), out.end(), is_nan));
            } else {
                const std::span<const double> expected(reference.data() + row * n,
                                                       static_cast<std::size_t>(n));
                CHECK(operators::compare_linear(out, expected, 1, n).too_far == 0);
            }
        }
    }
}
