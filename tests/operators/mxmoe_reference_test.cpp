// The reference of fused_moe where activations are quantised, held to its definition; and its comparisons.
#include "runtime/operators/mxmoe_reference.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "runtime/formats/bf16.hpp"
#include "runtime/formats/e2m1.hpp"
#include "runtime/formats/scale_layout.hpp"
#include "runtime/formats/weight_layout.hpp"

using namespace kiln::operators;
using kiln::formats::bf16_to_float;
using kiln::formats::float_to_bf16;

namespace {

constexpr std::uint64_t kSeed = 4104;

FusedMoeProblem problem(bool interleaved, std::int64_t experts = 6, std::int64_t slots = 4) {
    return {.hidden = 256,
            .intermediate = 256,
            .experts = experts,
            .slots = slots,
            .fp8 = false,
            .interleaved = interleaved};
}

// Row-major numbers of a preshuffled [rows, depth], by the formats' own way back.
std::vector<double> plain(const std::vector<std::uint8_t>& codes, const std::vector<std::uint8_t>& scales,
                          std::size_t rows, std::size_t depth, kiln::formats::RowOrder order) {
    std::vector<std::uint8_t> row_codes(codes.size()), row_scales(rows * depth / 32);
    kiln::formats::unshuffle_weights(codes, rows, depth / 2, order, row_codes);
    std::vector<std::uint8_t> padded = scales;
    padded.resize(kiln::formats::l3_bytes(rows, depth / 32));
    kiln::formats::unshuffle_scales(padded, rows, depth / 32, order, row_scales);
    std::vector<double> values(rows * depth);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const int code = i % 2 == 0 ? row_codes[i / 2] & 15 : row_codes[i / 2] >> 4;
        values[i] = std::ldexp(kiln::formats::e2m1_to_float(static_cast<std::uint8_t>(code)),
                               row_scales[i / 32] - 127);
    }
    return values;
}

// The nearest of all values that a group of this largest magnitude can have, ties to the even code.
double quantised(double value, double amax) {
    if (amax == 0) {
        return 0;
    }
    const double scale = std::exp2(std::ceil(std::log2(amax / 6)));
    double best = 0;
    for (const int code : {0, 2, 4, 6, 1, 3, 5, 7}) {
        const double candidate = kiln::formats::e2m1_to_float(static_cast<std::uint8_t>(code)) * scale;
        if (std::fabs(std::fabs(value) - candidate) < std::fabs(std::fabs(value) - best)) {
            best = candidate;
        }
    }
    return std::copysign(best, value);
}

std::vector<double> quantised(const std::vector<double>& values) {
    std::vector<double> result;
    for (std::size_t i = 0; i < values.size(); ++i) {
        double amax = 0;
        for (std::size_t k = i / 32 * 32; k < i / 32 * 32 + 32; ++k) {
            amax = std::max(amax, std::fabs(values[k]));
        }
        result.push_back(quantised(values[i], amax));
    }
    return result;
}

double product(std::span<const double> a, std::span<const double> b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        sum += a[i] * b[i];
    }
    return sum;
}

struct Expected {
    std::vector<double> quantised, kept, magnitudes;
};

// The definition word for word.
Expected by_definition(const FusedMoeArrays& arrays) {
    const std::size_t hidden = 256, intermediate = 256;
    const auto slots = static_cast<std::size_t>(arrays.problem.slots);
    Expected expected;
    for (std::size_t m = 0; m < static_cast<std::size_t>(arrays.m); ++m) {
        std::vector<double> x;
        for (std::size_t k = 0; k < hidden; ++k) {
            x.push_back(bf16_to_float(arrays.x[m * static_cast<std::size_t>(arrays.ldx) + k]));
        }
        x = quantised(x);
        std::vector<double> sum(hidden), kept(hidden), magnitude(hidden);
        for (std::size_t s = 0; s < slots; ++s) {
            const auto found = arrays.experts.find(arrays.ids[m * slots + s]);
            if (found == arrays.experts.end()) {
                continue;
            }
            const auto& expert = found->second;
            const std::vector<double> w13 =
                plain(expert.w13, expert.w13_scale, 2 * intermediate, hidden, w13_order(arrays.problem));
            const std::vector<double> w2 =
                plain(expert.w2, expert.w2_scale, hidden, intermediate, kiln::formats::RowOrder::plain());
            const auto row = [](const std::vector<double>& matrix, std::size_t n, std::size_t k) {
                return std::span(matrix).subspan(n * k, k);
            };
            std::vector<double> h;
            for (std::size_t i = 0; i < intermediate; ++i) {
                const double g = product(x, row(w13, i, hidden));
                h.push_back(g / (1 + std::exp(-g)) * product(x, row(w13, intermediate + i, hidden)));
            }
            const std::vector<double> q = quantised(h);
            const double weight = arrays.weights[m * slots + s];
            for (std::size_t n = 0; n < hidden; ++n) {
                sum[n] += weight * product(q, row(w2, n, intermediate));
                kept[n] += weight * product(h, row(w2, n, intermediate));
                magnitude[n] += std::fabs(weight * product(q, row(w2, n, intermediate)));
            }
        }
        expected.quantised.insert(expected.quantised.end(), sum.begin(), sum.end());
        expected.kept.insert(expected.kept.end(), kept.begin(), kept.end());
        expected.magnitudes.insert(expected.magnitudes.end(), magnitude.begin(), magnitude.end());
    }
    return expected;
}

double relative_l2(const std::vector<float>& found, const std::vector<double>& expected) {
    double gap = 0, size = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        gap += std::pow(found[i] - expected[i], 2);
        size += expected[i] * expected[i];
    }
    return std::sqrt(gap / size);
}

std::vector<std::uint16_t> rounded(const std::vector<float>& values) {
    std::vector<std::uint16_t> bits(values.size());
    std::ranges::transform(values, bits.begin(), float_to_bf16);
    return bits;
}

}  // namespace

TEST_CASE("mxmoe reference: equals the definition taken word for word, in both orders of w13") {
    INFO("seed ", kSeed);
    for (const bool interleaved : {false, true}) {
        CAPTURE(interleaved);
        const FusedMoeArrays arrays = make_fused_moe_case(problem(interleaved), 9, kSeed);
        const Expected expected = by_definition(arrays);
        const MxmoeReference found = mxmoe_reference(arrays);
        REQUIRE(found.quantised.size() == expected.quantised.size());
        CHECK(relative_l2(found.quantised, expected.quantised) < 1e-6);
        CHECK(relative_l2(found.kept, expected.kept) < 1e-6);
        CHECK(relative_l2(found.magnitudes, expected.magnitudes) < 1e-6);
    }
}

TEST_CASE("mxmoe reference: both orders of w13 are the same numbers") {
    const MxmoeReference separated = mxmoe_reference(make_fused_moe_case(problem(false), 5, kSeed));
    const MxmoeReference interleaved = mxmoe_reference(make_fused_moe_case(problem(true), 5, kSeed));
    CHECK(separated.quantised == interleaved.quantised);
    CHECK(fused_moe_reference(make_fused_moe_case(problem(false), 5, kSeed)) ==
          fused_moe_reference(make_fused_moe_case(problem(true), 5, kSeed)));
}

TEST_CASE("mxmoe reference: what quantising the intermediate costs is the percent that it should") {
    const FusedMoeArrays arrays = make_fused_moe_case(problem(false, 40, 8), 33, kSeed);
    const MxmoeReference reference = mxmoe_reference(arrays);
    const MxmoeComparison comparison = compare_mxmoe(rounded(reference.quantised), reference, 33, 256);
    CHECK(comparison.outputs == 33 * 256);
    CHECK(comparison.passed());
    CHECK(comparison.error < 2e-3);  // one rounding to bf16
    CHECK(comparison.cosine_difference > 5e-3);
    CHECK(comparison.cosine_difference < 1.5e-2);
    // And what an intermediate that is not quantised would look like.
    CHECK_FALSE(compare_mxmoe(rounded(reference.kept), reference, 33, 256).passed());
}

TEST_CASE("mxmoe comparison: sees one wrong scale byte, a small token, and what is not finite") {
    FusedMoeArrays arrays = make_fused_moe_case(problem(false), 4, kSeed);
    const MxmoeReference reference = mxmoe_reference(arrays);
    std::vector<std::uint16_t> out = rounded(reference.quantised);
    REQUIRE(compare_mxmoe(out, reference, 4, 256).passed());
    const auto expert = arrays.experts.find(arrays.ids[0]);
    ++expert->second.w2_scale[40];
    CHECK_FALSE(compare_mxmoe(rounded(mxmoe_reference(arrays).quantised), reference, 4, 256).passed());

    out[300] = 0x7fc0;
    CHECK_FALSE(compare_mxmoe(out, reference, 4, 256).passed());
    CHECK(compare_mxmoe(out, reference, 1, 256).passed());
    out[300] = 0x7f80;
    CHECK_FALSE(compare_mxmoe(out, reference, 4, 256).passed());

    MxmoeReference small = reference;
    for (std::size_t i = 256; i < 512; ++i) {
        small.quantised[i] *= 1e-6F;
        small.kept[i] *= 1e-6F;
    }
    out = rounded(small.quantised);
    REQUIRE(compare_mxmoe(out, small, 4, 256).passed());
    std::rotate(out.begin() + 256, out.begin() + 257, out.begin() + 512);
    const MxmoeComparison comparison = compare_mxmoe(out, small, 4, 256);
    CHECK(comparison.error < MxmoeComparison::kBound);
    CHECK(comparison.token_error > MxmoeComparison::kTokenBound);
    CHECK(comparison.worst_token == 1);
    CHECK_FALSE(comparison.passed());
}

TEST_CASE("mxmoe comparison: what should be zero is zero") {
    FusedMoeArrays arrays = make_fused_moe_case(problem(false), 2, kSeed);
    std::ranges::fill(arrays.ids, -1);
    const MxmoeReference reference = mxmoe_reference(arrays);
    std::vector<std::uint16_t> out(512, 0x8000);
    CHECK(compare_mxmoe(out, reference, 2, 256).passed());
    out[7] = 1;
    CHECK_FALSE(compare_mxmoe(out, reference, 2, 256).passed());
}

TEST_CASE("mxmoe comparison: counts what roundings can not explain") {
    const FusedMoeArrays arrays = make_fused_moe_case(problem(false), 4, kSeed);
    const MxmoeReference reference = mxmoe_reference(arrays);
    const std::vector<std::uint16_t> out = rounded(reference.quantised);
    CHECK(count_beyond_rounding(out, out, reference, 4) == 0);
    std::vector<std::uint16_t> other = out;
    ++other[3];  // one place
    CHECK(count_beyond_rounding(other, out, reference, 4) == 0);
    other[3] = float_to_bf16(bf16_to_float(out[3]) + 0.05F * reference.magnitudes[3]);
    other[9] = 0x7fc0;
    CHECK(count_beyond_rounding(other, out, reference, 4) == 2);
}
