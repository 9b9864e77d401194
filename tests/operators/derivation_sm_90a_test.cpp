// The rule that makes constants for a problem that no one has tuned, on sm_90a.

#include "runtime/operators/linear_derivation_sm_90a.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "runtime/operators/linear_small_m.hpp"

using namespace kiln::operators;

namespace {

Problem problem(std::int64_t n, std::int64_t k) {
    return *complete(linear(), {{"n", n}, {"k", k}});
}

std::int64_t constant(const Bucket& bucket, const char* name) {
    return bucket.constants.find(name)->second;
}

// The buckets of a problem that the rule serves up to M = 32.
std::vector<Bucket> derived(std::int64_t n, std::int64_t k) {
    const auto buckets = derive_linear_small_m_sm_90a(problem(n, k));
    REQUIRE_MESSAGE(buckets, buckets.error().message);
    REQUIRE(buckets->size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
        CHECK((*buckets)[i].max_m == 8 * static_cast<std::int64_t>(i + 1));
    }
    return *buckets;
}

}  // namespace

TEST_CASE("derivation for sm_90a: nearly all of the multiprocessors get the same share of the weights") {
    for (const auto& [n, k] : {std::pair<std::int64_t, std::int64_t>{5120, 4096},
                               {4608, 4096},
                               {4096, 2048},
                               {2560, 4096},
                               {4096, 8192},
                               {8704, 4096},
                               {17408, 4096},
                               {20480, 4096}}) {
        for (const Bucket& bucket : derived(n, k)) {
            CAPTURE(n);
            CAPTURE(bucket.max_m);
            const auto shape = linear_small_m_sm_90a().kernels(problem(n, k), bucket).front().shape_for(1);
            CHECK(shape.grid.x <= 132);
            CHECK(shape.grid.x >= 108);
            CHECK(shape.dynamic_lds_bytes <= 227 * 1024);
        }
    }
}

TEST_CASE("derivation for sm_90a: weights are in flight, in steps that can overlap") {
    for (const Bucket& bucket : derived(5120, 4096)) {
        const std::int64_t step_blocks = 32 / constant(bucket, "split_k") / constant(bucket, "steps");
        CHECK(constant(bucket, "stages") * step_blocks * constant(bucket, "tiles_n") * 2 >= 64);  // KiB
        CHECK(constant(bucket, "steps") >= 4);
        CHECK(constant(bucket, "early_steps") == constant(bucket, "stages"));
    }
    // One block of K: one step, one warp a tile, no cluster.
    for (const Bucket& bucket : derived(16, 128)) {
        for (const char* name : {"split_k", "tiles_n", "warps_k", "steps"}) {
            CHECK(constant(bucket, name) == 1);
        }
    }
}

TEST_CASE("derivation for sm_90a: a K that leaves no room for weights ends the buckets, or has none") {
    const auto ends_early = derive_linear_small_m_sm_90a(problem(16, 128 * 480));
    REQUIRE(ends_early);
    CHECK(ends_early->back().max_m < 32);
    const auto none = derive_linear_small_m_sm_90a(problem(16, 128 * 8 * 300));
    REQUIRE(!none);
    CHECK(none.error().code == kiln::ErrorCode::bad_input);
    CHECK(none.error().message.find("linear n=16 k=307200") != std::string::npos);
    CHECK(!derive_linear_small_m_sm_90a(problem(std::int64_t{1} << 24, 1024)));  // 16 GiB
}

TEST_CASE("derivation for sm_90a: whatever the problem, the row is one that the operator accepts") {
    const auto seed = std::random_device()();
    MESSAGE("seed " << seed);
    std::mt19937_64 random(seed);
    for (int i = 0; i < 60; ++i) {
        kiln::tables::Row row;
        row.operator_name = "linear";
        row.problem = problem(16 * static_cast<std::int64_t>(1 + random() % 3000),
                              128 * static_cast<std::int64_t>(1 + random() % 100));
        row.target = *kiln::tables::parse_target("sm_90a");
        CAPTURE(format_problem(linear(), row.problem));
        const auto buckets = linear().derive(row.problem, row.target);
        REQUIRE_MESSAGE(buckets, buckets.error().message);
        row.buckets = *buckets;
        CHECK(check_row(row).empty());
    }
}
