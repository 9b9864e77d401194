#include "runtime/operators/linear_reference.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "runtime/formats/bf16.hpp"
#include "runtime/formats/e4m3.hpp"

using namespace kiln::operators;
using kiln::formats::bf16_to_float;
using kiln::formats::double_to_bf16;
using kiln::formats::e4m3_to_float;

namespace {

// The definition once more, word for word and one output at a time.
double one_output(const LinearArrays& a, std::int64_t m, std::int64_t n) {
    double sum = 0;
    for (std::int64_t kb = 0; kb < a.k / 128; ++kb) {
        float amax = 1e-10f;
        for (std::int64_t k = kb * 128; k < kb * 128 + 128; ++k) {
            amax = std::max(amax, std::fabs(bf16_to_float(a.x[static_cast<std::size_t>(m * a.ldx + k)])));
        }
        const float scale = amax * std::bit_cast<float>(0x3B124925u);
        const float inverse = 1.0f / scale;
        double dot = 0;
        for (std::int64_t k = kb * 128; k < kb * 128 + 128; ++k) {
            const float x = bf16_to_float(a.x[static_cast<std::size_t>(m * a.ldx + k)]);
            const float q = e4m3_to_float(kiln::formats::float_to_e4m3(x * inverse));
            const std::int64_t offset = n / 16 * 16 * a.k + k / 16 * 256 + n % 16 * 16 + k % 16;
            dot += static_cast<double>(q) *
                   static_cast<double>(e4m3_to_float(a.w[static_cast<std::size_t>(offset)]));
        }
        sum += static_cast<double>(scale) *
               static_cast<double>(a.w_scale[static_cast<std::size_t>(n / 128 * (a.k / 128) + kb)]) * dot;
    }
    return sum;
}

}  // namespace

TEST_CASE("linear reference: equals the definition taken word for word") {
    const std::uint64_t seed = 5;
    INFO("seed ", seed);
    const LinearArrays arrays = make_linear_case(9, 144, 384, seed);  // the last block of n is a part of one
    const std::vector<double> reference = linear_reference(arrays);
    for (std::int64_t m = 0; m < arrays.m; ++m) {
        for (std::int64_t n = 0; n < arrays.n; ++n) {
            REQUIRE(reference[static_cast<std::size_t>(m * arrays.n + n)] == one_output(arrays, m, n));
        }
    }
}

TEST_CASE("linear case: rows do not depend on how many there are") {
    const LinearArrays few = make_linear_case(3, 32, 256, 9);
    const LinearArrays many = make_linear_case(17, 32, 256, 9);
    CHECK(few.w == many.w);
    CHECK(few.w_scale == many.w_scale);
    CHECK(std::equal(few.x.begin(), few.x.end(), many.x.begin()));
    CHECK(make_linear_case(3, 32, 256, 10).w != few.w);
}

TEST_CASE("linear case: reaches into the corners") {
    const LinearArrays arrays = make_linear_case(32, 256, 1024, 1);
    const auto row = [&](std::size_t m) {
        return std::span(arrays.x).subspan(m * static_cast<std::size_t>(arrays.ldx),
                                           static_cast<std::size_t>(arrays.k));
    };
    const auto all_zero = [](std::span<const std::uint16_t> values) {
        return std::all_of(values.begin(), values.end(), [](std::uint16_t bits) { return bits == 0; });
    };
    int zero_rows = 0, zero_groups = 0, largest = 0, subnormal = 0;
    for (std::size_t m = 0; m < 32; ++m) {
        zero_rows += all_zero(row(m));
        for (std::size_t group = 0; group < 8; ++group) {
            zero_groups += all_zero(row(m).subspan(group * 128, 128));
        }
        for (const std::uint16_t bits : row(m)) {
            largest += bits == 0x7f7f;
            subnormal += (bits & 0x7f80) == 0 && (bits & 0x7f) != 0;
        }
    }
    CHECK(zero_rows > 0);
    CHECK(zero_rows < 8);
    CHECK(zero_groups > 8 * zero_rows);
    CHECK(largest > 0);
    CHECK(subnormal > 0);
    bool seen[256] = {};
    for (const std::uint8_t code : arrays.w) {
        seen[code] = true;
    }
    CHECK(std::count(std::begin(seen), std::end(seen), true) == 254);  // all but the two NaN
    for (const double value : linear_reference(arrays)) {
        REQUIRE(std::isfinite(bf16_to_float(double_to_bf16(value))));
    }
}

TEST_CASE("linear comparison: what is allowed and what is not") {
    const std::int64_t n = 1000;
    std::vector<double> reference(static_cast<std::size_t>(n), 1.0);
    reference[0] = 1e6;
    std::vector<std::uint16_t> out(reference.size());
    std::transform(reference.begin(), reference.end(), out.begin(), double_to_bf16);
    const auto compare = [&] { return compare_linear(out, reference, 1, n); };
    CHECK(compare().passed());
    CHECK(compare().differing == 0);

    out[1] += 1;  // one unit
    out[2] -= 1;
    CHECK(compare().passed());
    CHECK(compare().differing == 2);
    out[3] += 1;  // a third in a thousand
    CHECK_FALSE(compare().passed());
    out[3] -= 1;

    out[2] = double_to_bf16(1.5);  // many units, but within 1e-6 of the row's largest
    CHECK(compare().passed());
    out[2] = double_to_bf16(3.0);  // beyond that
    CHECK_FALSE(compare().passed());
    CHECK(compare().too_far == 1);
    out[2] = 0x7fc0;
    CHECK_FALSE(compare().passed());
    out[2] = out[4];
    reference[2] = std::numeric_limits<double>::quiet_NaN();
    CHECK_FALSE(compare().passed());
    out[2] = 0x7fc0;
    CHECK(compare().passed());
}
