#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <random>
#include <span>

#include "runtime/formats/bf16.hpp"
#include "runtime/formats/mx.hpp"
#include "runtime/operators/moe_sort_reference.hpp"

namespace kiln::operators {

namespace {

using formats::Bf16Bits;
using formats::float_to_bf16;
using formats::kMxGroup;
using Random = std::mt19937_64;

constexpr Bf16Bits kNan = 0x7fc0;
constexpr Bf16Bits kLargest = 0x7f7f;
constexpr Bf16Bits kSign = 0x8000;

// What the tokens of a mixed case are, in turn.
enum class TokenKind { ordinary, padding, one_expert, some_out_of_range };
constexpr TokenKind kKinds[] = {TokenKind::ordinary,   TokenKind::ordinary, TokenKind::some_out_of_range,
                                TokenKind::one_expert, TokenKind::ordinary, TokenKind::padding,
                                TokenKind::ordinary};

// Distinct as long as there are experts enough.
void draw_distinct(std::span<std::int32_t> ids, std::int64_t experts, Random& random) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
        do {
            ids[i] = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(experts));
        } while (static_cast<std::int64_t>(i) < experts &&
                 std::find(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(i), ids[i]) !=
                     ids.begin() + static_cast<std::ptrdiff_t>(i));
    }
}

void draw_mixed(std::span<std::int32_t> ids, std::int64_t experts, TokenKind kind, Random& random) {
    const auto last = static_cast<std::int32_t>(experts - 1);
    draw_distinct(ids, experts, random);
    switch (kind) {
        case TokenKind::ordinary:
            ids.back() = last;  // as a shared expert: in every token
            break;
        case TokenKind::one_expert:
            std::fill(ids.begin(), ids.end(), ids.front());
            break;
        case TokenKind::padding:
            std::fill(ids.begin(), ids.end(), -1);
            break;
        case TokenKind::some_out_of_range: {
            constexpr std::int32_t kOut[] = {0, 1, 0x01000000, 0x7fffffff - 1024};
            ids[random() % ids.size()] = last + 1 + kOut[random() % std::size(kOut)];
            ids[random() % ids.size()] = -static_cast<std::int32_t>(random() % 0x7fffffff) - 1;
            break;
        }
    }
}

void fill_group(std::span<Bf16Bits> group, Random& random) {
    std::normal_distribution<float> normal;
    const float spread = 8.0f * std::uniform_real_distribution<float>(0.0f, 1.0f)(random);
    for (Bf16Bits& value : group) {
        value = float_to_bf16(normal(random) * spread);
    }
    switch (random() % 8) {
        case 0:
            std::fill(group.begin(), group.end(), static_cast<Bf16Bits>(random() % 2 == 0 ? 0 : kSign));
            break;
        case 1:
            group[random() % kMxGroup] = kLargest;
            group[random() % kMxGroup] = kLargest | kSign;
            break;
        case 2:  // subnormals
            for (Bf16Bits& value : group) {
                value = static_cast<Bf16Bits>((random() & 0x7f) | (random() & kSign));
            }
            break;
        case 3:  // around the floor
            for (Bf16Bits& value : group) {
                value = float_to_bf16(std::ldexp(1e-10f, static_cast<int>(random() % 9) - 6) *
                                      (random() % 2 == 0 ? 1.0f : -1.0f));
            }
            break;
        case 4:  // exactly 448 times a power of two: the scale is not rounded up
            group[random() % kMxGroup] = float_to_bf16(448.0f * 64.0f);
            break;
        default:
            break;
    }
}

}  // namespace

MoeSortArrays make_moe_sort_case(const MoeSortProblem& problem, std::int64_t m, std::uint64_t seed,
                                 MoeSortDraw draw) {
    MoeSortArrays arrays;
    arrays.problem = problem;
    arrays.m = m;
    const auto slots = static_cast<std::size_t>(problem.slots);
    arrays.ids.resize(static_cast<std::size_t>(m) * slots);
    arrays.weights.resize(arrays.ids.size());
    const auto hidden = static_cast<std::size_t>(problem.hidden);
    if (problem.quantised) {
        // A stride other than hidden, with NaN between rows.
        arrays.ldx = problem.hidden + 8;
        arrays.x.assign(static_cast<std::size_t>(m * arrays.ldx), kNan);
    }
    Random random(seed);
    for (std::size_t token = 0; token < static_cast<std::size_t>(m); ++token) {
        const std::span<std::int32_t> ids(&arrays.ids[token * slots], slots);
        if (draw == MoeSortDraw::mixed) {
            draw_mixed(ids, problem.experts, kKinds[token % std::size(kKinds)], random);
        } else if (draw == MoeSortDraw::distinct) {
            draw_distinct(ids, problem.experts, random);
        } else {
            std::fill(ids.begin(), ids.end(), static_cast<std::int32_t>(problem.experts / 2));
        }
        for (std::size_t slot = 0; slot < slots; ++slot) {
            arrays.weights[token * slots + slot] =
                1.0f + static_cast<float>(token * slots + slot) / static_cast<float>(1 << 20);
        }
        for (std::size_t first = 0; problem.quantised && first < hidden; first += kMxGroup) {
            fill_group({&arrays.x[token * static_cast<std::size_t>(arrays.ldx) + first], kMxGroup}, random);
        }
    }
    return arrays;
}

MoeSortArrays head(const MoeSortArrays& arrays, std::int64_t m) {
    MoeSortArrays result = arrays;
    result.m = m;
    result.ids.resize(static_cast<std::size_t>(m * arrays.problem.slots));
    result.weights.resize(result.ids.size());
    result.x.resize(static_cast<std::size_t>(m * arrays.ldx));
    return result;
}

}  // namespace kiln::operators
