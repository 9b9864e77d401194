// What linear/small_m computes where constants and inputs are unusual. The shipped problems are judged with
// their counts.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/formats/bf16.hpp"
#include "runtime/formats/e4m3.hpp"
#include "runtime/formats/quantise.hpp"
#include "runtime/formats/weight_layout.hpp"
#include "runtime/operators/linear_reference.hpp"
#include "shipped.hpp"
#include "simulator.hpp"

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

}  // namespace

TEST_CASE("results: every way to lay out the work gives the same numbers") {
    struct Layout {
        std::int64_t n, k, max_m;
        tables::Constants constants;
    };
    const std::vector<Layout> layouts = {
        // One wave, no LDS.
        {16, 128, 1, {{"tiles_n", 1}, {"waves", 1}, {"lane_rows", 4}, {"blocks_ahead", 1}}},
        // Work-groups that lie across two weight scales; an odd number of tiles.
        {240, 768, 5, {{"tiles_n", 5}, {"waves", 2}, {"lane_rows", 8}, {"blocks_ahead", 1}}},
        // Three blocks ahead of six; four tokens.
        {64, 1536, 4, {{"tiles_n", 2}, {"waves", 2}, {"lane_rows", 4}, {"blocks_ahead", 3}}},
        // Scales of four blocks together, twice, through a ring.
        {64, 2048, 3, {{"tiles_n", 1}, {"waves", 2}, {"lane_rows", 4}, {"blocks_ahead", 4}}},
        // More fragments than waves; three tiles of M.
        {256, 384, 48, {{"tiles_n", 2}, {"waves", 3}, {"lane_rows", 16}, {"blocks_ahead", 1}}},
        // Four tiles of M; then eight tiles of N, and a bucket with fewer tokens than lane rows.
        {32, 512, 64, {{"tiles_n", 1}, {"waves", 4}, {"lane_rows", 16}, {"blocks_ahead", 1}}},
        {128, 512, 7, {{"tiles_n", 8}, {"waves", 4}, {"lane_rows", 8}, {"blocks_ahead", 1}}},
    };
    const auto device = open_simulator();
    std::vector<operators::Specialisation> wanted;
    for (const Layout& layout : layouts) {
        wanted.push_back(specialise_linear(layout.n, layout.k, layout.max_m, layout.constants));
    }
    const std::vector<Built> all = build(std::move(wanted));
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
    const auto device = open_simulator();
    std::vector<operators::Specialisation> wanted;
    for (const auto& [max_m, lane_rows] : {std::pair{4, 4}, std::pair{8, 8}, std::pair{32, 16}}) {
        wanted.push_back(specialise_linear(
            n, k, max_m, {{"tiles_n", 2}, {"waves", 2}, {"lane_rows", lane_rows}, {"blocks_ahead", 2}}));
    }
    constexpr std::uint8_t kOne = 0x38;
    for (const Built& built : build(std::move(wanted))) {
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
    const auto device = open_simulator();
    std::vector<operators::Specialisation> wanted;
    for (const std::int64_t lane_rows : {8, 16}) {
        wanted.push_back(specialise_linear(
            n, k, m, {{"tiles_n", 1}, {"waves", 2}, {"lane_rows", lane_rows}, {"blocks_ahead", 1}}));
    }
    auto arrays = operators::make_linear_case(m, n, k, 77);
    const auto reference = operators::linear_reference(arrays);
    arrays.x[static_cast<std::size_t>(1 * arrays.ldx + 200)] = kInfinity;
    arrays.x[static_cast<std::size_t>(4 * arrays.ldx + 3)] = kNan;
    const LoadedCase loaded(*device, arrays);
    for (const Built& built : build(std::move(wanted))) {
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
