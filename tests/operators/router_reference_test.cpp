// The reference of `router` against rows of a few experts worked out by hand, and what its inputs reach.
#include "runtime/operators/router_reference.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "runtime/formats/bf16.hpp"

using namespace kiln::operators;
using kiln::formats::float_to_bf16;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// One token whose logits are these: x is one-hot, and the gate has them in that column.
RouterArrays with_logits(const std::vector<float>& logits, std::int64_t top_k, std::int64_t shared = 0) {
    RouterArrays arrays;
    arrays.m = 1;
    arrays.hidden = 8;
    arrays.ldx = 8;
    arrays.experts = static_cast<std::int64_t>(logits.size());
    arrays.top_k = top_k;
    arrays.shared = shared;
    arrays.scale = 2;
    arrays.x.assign(8, 0);
    arrays.x[3] = float_to_bf16(1);
    arrays.gate.assign(logits.size() * 8, 0);
    for (std::size_t expert = 0; expert < logits.size(); ++expert) {
        arrays.gate[expert * 8 + 3] = float_to_bf16(logits[expert]);
    }
    arrays.shared_gate.assign(shared != 0 ? 8 : 0, float_to_bf16(1.5f));
    return arrays;
}

std::vector<std::int32_t> ids(const std::vector<float>& logits, std::int64_t top_k) {
    return router_reference(with_logits(logits, top_k)).ids;
}

}  // namespace

TEST_CASE("router reference: descending, lowest id first among equals, zeros alike, NaN last") {
    using Ids = std::vector<std::int32_t>;
    CHECK(ids({1, 3, 2}, 3) == Ids{1, 2, 0});
    CHECK(ids({2, 5, 2, 5, 5}, 4) == Ids{1, 3, 4, 0});
    CHECK(ids({-1, -0.0f, 0.0f, -0.0f}, 3) == Ids{1, 2, 3});
    CHECK(ids({kNan, -kInfinity, kNan, kInfinity}, 4) == Ids{3, 1, 0, 2});
    // Equal as bf16 only: 1 + 2^-9 rounds to 1.
    CHECK(ids({1, 1 + 0x1p-9f, 1}, 2) == Ids{0, 1});
}

TEST_CASE("router reference: weights of the chosen sum to one, the shared one's is its own") {
    const RouterResults results = router_reference(with_logits({0, 2, 1, -3}, 2, 1));
    CHECK(results.ids == std::vector<std::int32_t>{1, 2, 4});
    CHECK(results.weights[0] == doctest::Approx(std::exp(2.0) / (std::exp(2.0) + std::exp(1.0))));
    CHECK(results.weights[0] + results.weights[1] == doctest::Approx(1));
    CHECK(results.weights[2] == doctest::Approx(2 / (1 + std::exp(-1.5))));
}

TEST_CASE("router reference: a NaN or an infinity among the logits makes NaN of the weights") {
    for (const std::vector<float>& logits :
         {std::vector<float>{3, 2, 1, kNan}, {3, 2, kInfinity, 0}, {-kInfinity, -kInfinity, -kInfinity}}) {
        const RouterResults results = router_reference(with_logits(logits, 2));
        CHECK(std::isnan(results.weights[0]));
        CHECK(std::isnan(results.weights[1]));
    }
    const RouterResults finite = router_reference(with_logits({1, -kInfinity, 1}, 3));
    CHECK(finite.weights == std::vector<double>{0.5, 0.5, 0});
}

TEST_CASE("router reference: a comparison sees a wrong id, a weight that is off, and NaN on one side only") {
    const RouterResults wanted = router_reference(with_logits({0, 2, 1, kNan}, 2, 1));
    std::vector<float> weights(wanted.weights.begin(), wanted.weights.end());
    CHECK(std::isnan(weights[0]));
    CHECK(compare_router(wanted.ids, weights, wanted, 1, 3).passed());

    std::vector<std::int32_t> ids = wanted.ids;
    std::swap(ids[0], ids[1]);
    const RouterComparison swapped = compare_router(ids, weights, wanted, 1, 3);
    CHECK(!swapped.passed());
    CHECK(swapped.wrong_ids == 2);

    weights[2] += 1e-4f;
    CHECK(compare_router(wanted.ids, weights, wanted, 1, 3).too_far == 1);
    CHECK(!compare_router(wanted.ids, weights, wanted, 1, 3).passed());
    weights = {0.5f, weights[1], static_cast<float>(wanted.weights[2])};
    CHECK(!compare_router(wanted.ids, weights, wanted, 1, 3).passed());
}

TEST_CASE("router case: tokens do not depend on how many there are, and reach ties, infinities and NaN") {
    const RouterArrays eight = make_router_case(8, 256, 96, 6, 1, 3);
    const RouterArrays two = make_router_case(2, 256, 96, 6, 1, 3);
    CHECK(two.gate == eight.gate);
    CHECK(std::equal(two.x.begin(), two.x.end(), eight.x.begin()));
    CHECK(eight.ldx != eight.hidden);

    const RouterResults results = router_reference(eight);
    const auto columns = static_cast<std::size_t>(eight.columns());
    std::size_t nan_rows = 0, equal_neighbours = 0;
    for (std::size_t token = 0; token < 8; ++token) {
        const double* weights = &results.weights[token * columns];
        nan_rows += std::isnan(weights[0]) ? 1 : 0;
        for (std::size_t i = 0; i + 2 < columns; ++i) {
            equal_neighbours += weights[i] == weights[i + 1] ? 1 : 0;
        }
    }
    CHECK(nan_rows == 2);
    CHECK(equal_neighbours >= 10);
}
