#include "runtime/operators/fused_moe_reference.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "runtime/formats/bf16.hpp"
#include "runtime/formats/e2m1.hpp"
#include "runtime/formats/e4m3.hpp"
#include "runtime/formats/e8m0.hpp"

using namespace kiln::operators;
using kiln::formats::bf16_to_float;
using kiln::formats::double_to_bf16;

namespace {

constexpr std::uint64_t kSeed = 77;

FusedMoeProblem mxfp4(std::int64_t experts, std::int64_t slots) {
    return {.hidden = 256, .intermediate = 64, .experts = experts, .slots = slots, .fp8 = false};
}
FusedMoeProblem fp8(std::int64_t experts, std::int64_t slots) {
    return {.hidden = 256, .intermediate = 128, .experts = experts, .slots = slots, .fp8 = true};
}

// The whole arrays, as a kernel gets them.
struct Whole {
    std::vector<std::uint8_t> w13, w13_scale, w2, w2_scale;
};

Whole whole(const FusedMoeArrays& arrays) {
    const FusedMoeBytes bytes = fused_moe_bytes(arrays.problem);
    Whole all{std::vector<std::uint8_t>(bytes.w13), std::vector<std::uint8_t>(bytes.w13_scale),
              std::vector<std::uint8_t>(bytes.w2), std::vector<std::uint8_t>(bytes.w2_scale)};
    for (const auto& [id, expert] : arrays.experts) {
        const auto at = static_cast<std::size_t>(id);
        std::ranges::copy(expert.w13, &all.w13[at * bytes.expert_w13]);
        std::ranges::copy(expert.w13_scale, &all.w13_scale[at * bytes.expert_w13_scale]);
        std::ranges::copy(expert.w2, &all.w2[at * bytes.expert_w2]);
        std::ranges::copy(expert.w2_scale, &all.w2_scale[at * bytes.expert_w2_scale]);
    }
    return all;
}

// Element (e, n, k) of [experts, rows, depth], by the published formulas.
double weight(bool is_fp8, const std::vector<std::uint8_t>& codes, const std::vector<std::uint8_t>& scales,
              std::int64_t rows, std::int64_t depth, std::int64_t e, std::int64_t n, std::int64_t k) {
    const std::int64_t row_bytes = is_fp8 ? depth : depth / 2;
    const std::int64_t kb = is_fp8 ? k : k / 2;
    const std::int64_t offset =
        e * rows * row_bytes + (n >> 4) * 16 * row_bytes + (kb >> 4) * 256 + (n & 15) * 16 + (kb & 15);
    const std::uint8_t byte = codes[static_cast<std::size_t>(offset)];
    if (is_fp8) {
        float scale = 0;
        const std::int64_t index = (e * (rows / 128) + n / 128) * (depth / 128) + k / 128;
        std::memcpy(&scale, &scales[static_cast<std::size_t>(index) * 4], 4);
        return static_cast<double>(scale) * kiln::formats::e4m3_to_float(byte);
    }
    const std::int64_t r = e * rows + n, c = k / 32, padded = (depth / 32 + 7) / 8 * 8;
    const std::int64_t at = (r / 32) * 32 * padded + (c / 8) * 256 + (c % 4) * 64 + (r % 16) * 4 +
                            ((c % 8) / 4) * 2 + (r % 32) / 16;
    const int code = k % 2 == 0 ? byte & 15 : byte >> 4;
    return std::ldexp(kiln::formats::e2m1_to_float(static_cast<std::uint8_t>(code)),
                      scales[static_cast<std::size_t>(at)] - 127);
}

// The definition word for word, one output at a time.
std::vector<std::uint16_t> by_definition(const FusedMoeArrays& arrays) {
    const auto [hidden, intermediate, experts, slots, is_fp8, interleaved] = arrays.problem;
    const Whole all = whole(arrays);
    std::vector<std::uint16_t> out;
    for (std::int64_t m = 0; m < arrays.m; ++m) {
        std::vector<double> sum(static_cast<std::size_t>(hidden));
        for (std::int64_t s = 0; s < slots; ++s) {
            const auto pair = static_cast<std::size_t>(m * slots + s);
            const std::int64_t e = arrays.ids[pair];
            if (e < 0 || e >= experts) {
                continue;
            }
            std::vector<double> h;
            for (std::int64_t i = 0; i < intermediate; ++i) {
                double g = 0, u = 0;
                for (std::int64_t k = 0; k < hidden; ++k) {
                    const double x = bf16_to_float(arrays.x[static_cast<std::size_t>(m * arrays.ldx + k)]);
                    g += x * weight(is_fp8, all.w13, all.w13_scale, 2 * intermediate, hidden, e, i, k);
                    u += x * weight(is_fp8, all.w13, all.w13_scale, 2 * intermediate, hidden, e,
                                    intermediate + i, k);
                }
                h.push_back(bf16_to_float(double_to_bf16(g / (1 + std::exp(-g)) * u)));
            }
            for (std::int64_t n = 0; n < hidden; ++n) {
                double dot = 0;
                for (std::int64_t i = 0; i < intermediate; ++i) {
                    dot += h[static_cast<std::size_t>(i)] *
                           weight(is_fp8, all.w2, all.w2_scale, hidden, intermediate, e, n, i);
                }
                sum[static_cast<std::size_t>(n)] += static_cast<double>(arrays.weights[pair]) * dot;
            }
        }
        std::ranges::transform(sum, std::back_inserter(out), double_to_bf16);
    }
    return out;
}

std::size_t count_differing(const std::vector<std::uint16_t>& a, const std::vector<std::uint16_t>& b) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        count += a[i] != b[i] ? 1 : 0;
    }
    return count;
}

}  // namespace

TEST_CASE("fused_moe reference: equals the definition taken word for word") {
    INFO("seed ", kSeed);
    for (const FusedMoeProblem& problem : {mxfp4(5, 4), fp8(3, 4)}) {
        CAPTURE(problem.fp8);
        const FusedMoeArrays arrays = make_fused_moe_case(problem, 9, kSeed);
        const std::vector<std::uint16_t> expected = by_definition(arrays);
        const std::vector<std::uint16_t> found = fused_moe_reference(arrays);
        REQUIRE(found.size() == expected.size());
        // The order of sums may tip one rounding in a great many.
        CHECK(count_differing(found, expected) <= 1);
        CHECK(compare_fused_moe(found, expected, arrays.m, problem.hidden).passed());
    }
}

TEST_CASE("fused_moe case: tokens do not depend on how many there are") {
    for (const FusedMoeProblem& problem : {mxfp4(100, 6), fp8(100, 6)}) {
        const FusedMoeArrays few = make_fused_moe_case(problem, 3, 9);
        const FusedMoeArrays many = make_fused_moe_case(problem, 17, 9);
        CHECK(std::equal(few.x.begin(), few.x.end(), many.x.begin()));
        CHECK(std::equal(few.ids.begin(), few.ids.end(), many.ids.begin()));
        for (const auto& [id, expert] : few.experts) {
            CHECK(many.experts.at(id).w13 == expert.w13);
            CHECK(many.experts.at(id).w2_scale == expert.w2_scale);
        }
        CHECK(make_fused_moe_case(problem, 3, 10).x != few.x);
    }
}

TEST_CASE("fused_moe typical case: each token chooses its experts anew") {
    for (const auto& [experts, slots] : {std::pair<std::int64_t, std::int64_t>{512, 10}, {513, 11}, {1, 2}}) {
        CAPTURE(experts);
        constexpr std::int64_t kTokens = 128;
        const FusedMoeArrays arrays = make_typical_fused_moe_case(mxfp4(experts, slots), kTokens, 5);
        const bool has_shared = experts == 513;
        std::set<std::int32_t> routed;
        for (std::int64_t token = 0; token < kTokens; ++token) {
            const auto first = arrays.ids.begin() + token * slots;
            const std::set<std::int32_t> ids(first, first + slots);
            CHECK(std::ssize(ids) == std::min(experts, slots));
            CHECK(*ids.begin() >= 0);
            CHECK(*ids.rbegin() < experts);
            if (has_shared) {
                CHECK(*(first + slots - 1) == experts - 1);
            }
            routed.insert(first, first + slots - (has_shared ? 1 : 0));
        }
        if (experts > 1) {
            // Of 512 experts 1280 choices leave out 512 * (502 / 512)^128, some 41.
            CHECK(routed.size() > 440);
            CHECK(routed.size() < 500);
            CHECK(*routed.rbegin() < (has_shared ? experts - 1 : experts));
            CHECK(arrays.weights_of(9) == arrays.weights_of(1));
            CHECK(arrays.weights_of(2) != arrays.weights_of(1));
        }
        CHECK(arrays.experts.size() <= 8);
        CHECK(arrays.weights_of(-1) == nullptr);
        CHECK(arrays.weights_of(static_cast<std::int32_t>(experts)) == nullptr);
        CHECK_FALSE(has_invalid_id(arrays, kTokens));
        const FusedMoeArrays few = make_typical_fused_moe_case(mxfp4(experts, slots), 3, 5);
        CHECK(std::equal(few.x.begin(), few.x.end(), arrays.x.begin()));
        CHECK(std::equal(few.ids.begin(), few.ids.end(), arrays.ids.begin()));
        CHECK(std::ranges::all_of(fused_moe_reference(few),
                                  [](std::uint16_t one) { return std::isfinite(bf16_to_float(one)); }));
    }
}

TEST_CASE("fused_moe case: reaches into the corners") {
    for (const std::int64_t experts : {std::int64_t{1}, std::int64_t{16}, std::int64_t{513}}) {
        CAPTURE(experts);
        const FusedMoeArrays arrays = make_fused_moe_case(mxfp4(experts, 11), 18, 1);
        std::set<std::int32_t> ids(arrays.ids.begin(), arrays.ids.end());
        CHECK(ids.contains(0));
        CHECK(ids.contains(-1));
        CHECK(ids.contains(static_cast<std::int32_t>(experts - 1)));
        CHECK(std::ranges::any_of(ids, [&](std::int32_t id) { return id < -1 || id >= experts; }));
        CHECK(has_invalid_id(arrays, 18));
        CHECK_FALSE(has_invalid_id(arrays, 1));
        for (std::size_t pair = 0; pair < arrays.ids.size(); ++pair) {
            const bool valid = arrays.ids[pair] >= 0 && arrays.ids[pair] < experts;
            CHECK(std::isnan(arrays.weights[pair]) != valid);
            CHECK(arrays.experts.contains(arrays.ids[pair]) == valid);
        }
        std::set<std::uint8_t> scales;
        for (const auto& [id, expert] : arrays.experts) {
            scales.insert(expert.w13_scale.begin(), expert.w13_scale.end());
        }
        CHECK(scales.size() == 5);  // four neighbours, and the code 0
        CHECK(scales.contains(0));
        int padded_tokens = 0, zero_rows = 0;
        for (std::size_t token = 0; token < 18; ++token) {
            padded_tokens += std::count(&arrays.ids[token * 11], &arrays.ids[token * 11] + 11, -1) == 11;
            const auto* row = &arrays.x[token * static_cast<std::size_t>(arrays.ldx)];
            zero_rows += std::count(row, row + arrays.problem.hidden, 0) == arrays.problem.hidden;
        }
        CHECK(padded_tokens == 2);
        CHECK(zero_rows == 2);
        // Neither vanishes nor overflows.
        for (const std::uint16_t bits : fused_moe_reference(arrays)) {
            REQUIRE(std::fabs(bf16_to_float(bits)) < 1e6f);
        }
    }
}

TEST_CASE("fused_moe case: experts that a test names are added") {
    FusedMoeArrays arrays = make_fused_moe_case(fp8(64, 4), 2, kSeed);
    std::ranges::fill(arrays.ids, 37);
    add_experts(arrays);
    CHECK(arrays.experts.contains(37));
    std::ranges::fill(arrays.weights, 0.25f);
    const std::vector<std::uint16_t> out = fused_moe_reference(arrays);
    CHECK(std::ranges::count(out, 0) < 16);
}

TEST_CASE("fused_moe comparison: sees one wrong scale byte, and a token that is small beside the others") {
    FusedMoeArrays arrays = make_fused_moe_case(mxfp4(16, 8), 4, kSeed);
    const std::vector<std::uint16_t> reference = fused_moe_reference(arrays);
    CHECK(compare_fused_moe(reference, reference, 4, 256).error == 0);
    ++arrays.experts.at(arrays.ids[1]).w2_scale[12];
    CHECK_FALSE(compare_fused_moe(fused_moe_reference(arrays), reference, 4, 256).passed());

    std::vector<std::uint16_t> scaled = reference;
    for (std::size_t i = 256; i < 512; ++i) {
        scaled[i] = kiln::formats::float_to_bf16(bf16_to_float(reference[i]) * 1e-6f);
    }
    std::vector<std::uint16_t> off = scaled;
    off[300] ^= 0x0080;  // twice or half
    const FusedMoeComparison comparison = compare_fused_moe(off, scaled, 4, 256);
    CHECK_FALSE(comparison.passed());
    CHECK(comparison.error < FusedMoeComparison::kBound);
    CHECK(comparison.token_error > FusedMoeComparison::kTokenBound);
    CHECK(comparison.worst_token == 1);
    CHECK(comparison.differing == 1);
}

TEST_CASE("fused_moe comparison: what is not finite, or should be zero") {
    std::vector<std::uint16_t> reference(512, 0x3f80), out = reference;
    out[5] = 0x7fc0;
    CHECK_FALSE(compare_fused_moe(out, reference, 2, 256).passed());
    out[5] = 0x7f80;
    CHECK_FALSE(compare_fused_moe(out, reference, 2, 256).passed());
    out[5] = reference[5];
    CHECK(compare_fused_moe(out, reference, 2, 256).passed());
    std::fill_n(reference.begin(), 256, std::uint16_t{0});
    CHECK_FALSE(compare_fused_moe(out, reference, 2, 256).passed());
    std::fill_n(out.begin(), 256, std::uint16_t{0x8000});  // -0 is as good
    CHECK(compare_fused_moe(out, reference, 2, 256).passed());
}
