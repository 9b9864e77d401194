#include <array>
#include <cmath>
#include <random>

#include "runtime/formats/bf16.hpp"
#include "runtime/formats/quantise.hpp"
#include "runtime/operators/linear_reference.hpp"

namespace kiln::operators {

namespace {

using formats::Bf16Bits;
using formats::float_to_bf16;
using formats::kFp8Group;
using Random = std::mt19937_64;

constexpr Bf16Bits kLargest = 0x7f7f;
constexpr Bf16Bits kSign = 0x8000;

// What a row of x is made of, in turn, so that few rows meet every kind. Row 0, alone at M = 1, is an
// ordinary one.
enum class RowKind { ordinary, zero, zero_groups, ends };
constexpr RowKind kKinds[] = {RowKind::ordinary, RowKind::ordinary, RowKind::zero_groups, RowKind::ordinary,
                              RowKind::ends,     RowKind::ordinary, RowKind::zero};

void fill_ordinary(std::span<Bf16Bits> group, Random& random) {
    std::normal_distribution<float> normal;
    const float spread = 8.0f * std::uniform_real_distribution<float>(0.0f, 1.0f)(random);
    for (Bf16Bits& value : group) {
        value = float_to_bf16(normal(random) * spread);
    }
}

// The largest magnitude among ordinary values, the largest and the smallest subnormals, and values around the
// floor of the quantiser, a group each.
void fill_ends(std::span<Bf16Bits> group, std::size_t index, Random& random) {
    switch (index % 4) {
        case 0:
            fill_ordinary(group, random);
            group[random() % kFp8Group] = kLargest;
            group[random() % kFp8Group] = kLargest | kSign;
            break;
        case 1:
            for (Bf16Bits& value : group) {
                value = static_cast<Bf16Bits>((random() & 0x7f) | (random() & kSign));
            }
            break;
        case 2:
            for (Bf16Bits& value : group) {
                value = float_to_bf16(std::ldexp(1e-10f, static_cast<int>(random() % 9) - 6) *
                                      (random() % 2 == 0 ? 1.0f : -1.0f));
            }
            break;
        default:
            fill_ordinary(group, random);
            break;
    }
}

void fill_row(std::span<Bf16Bits> row, RowKind kind, Random& random) {
    for (std::size_t group = 0; group < row.size() / kFp8Group; ++group) {
        const std::span<Bf16Bits> values = row.subspan(group * kFp8Group, kFp8Group);
        if (kind == RowKind::ends) {
            fill_ends(values, group, random);
        } else if (kind == RowKind::ordinary || (kind == RowKind::zero_groups && group % 2 == 1)) {
            fill_ordinary(values, random);
        }
    }
}

struct LinearShape {
    std::int64_t m = 0, n = 0, k = 0, ldx = 0;
};

// Rows of x of these kinds in turn; what lies between rows is NaN.
LinearArrays make_case(const LinearShape& shape, std::span<const RowKind> kinds, std::uint64_t seed) {
    const auto [m, n, k, ldx] = shape;
    LinearArrays arrays;
    arrays.m = m;
    arrays.n = n;
    arrays.k = k;
    arrays.ldx = ldx;
    arrays.x.assign(static_cast<std::size_t>(m * ldx), 0x7fc0);
    Random random(seed);

    // Weights and scales first: they do not depend on m.
    arrays.w.resize(static_cast<std::size_t>(n * k));
    for (std::uint8_t& code : arrays.w) {
        do {
            code = static_cast<std::uint8_t>(random());
        } while ((code & 0x7f) == 0x7f);
    }
    // Small enough that the largest magnitude of bf16 does not overflow float32 on the way.
    arrays.w_scale.resize(static_cast<std::size_t>((n + 127) / 128 * (k / 128)));
    std::uniform_real_distribution<float> exponent(-18.0f, -15.0f);
    for (float& scale : arrays.w_scale) {
        scale = std::exp2(exponent(random));
    }
    for (std::int64_t row = 0; row < m; ++row) {
        const std::span<Bf16Bits> values(&arrays.x[static_cast<std::size_t>(row * ldx)],
                                         static_cast<std::size_t>(k));
        std::fill(values.begin(), values.end(), Bf16Bits{0});
        fill_row(values, kinds[static_cast<std::size_t>(row) % kinds.size()], random);
    }
    return arrays;
}

}  // namespace

LinearArrays make_linear_case(std::int64_t m, std::int64_t n, std::int64_t k, std::uint64_t seed) {
    // A stride other than K, so that nothing passes by taking one for the other.
    return make_case({m, n, k, k + 8}, kKinds, seed);
}

LinearArrays make_typical_linear_case(std::int64_t m, std::int64_t n, std::int64_t k, std::uint64_t seed) {
    constexpr RowKind kOrdinary[] = {RowKind::ordinary};
    return make_case({m, n, k, k}, kOrdinary, seed);
}

}  // namespace kiln::operators
