// The rule that makes constants for a problem that no one has tuned, on gfx950.

#include "runtime/operators/linear_derivation_gfx950.hpp"

#include <doctest/doctest.h>

#include <random>
#include <tuple>
#include <vector>

using namespace kiln::operators;
using kiln::tables::parse_target;

namespace {

Problem problem(std::int64_t n, std::int64_t k) {
    return *complete(linear(), {{"n", n}, {"k", k}});
}

// tiles_n, waves, blocks_ahead of each bucket.
using Choices = std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>;

Choices choices(std::int64_t n, std::int64_t k) {
    const auto buckets = derive_linear_small_m_gfx950(problem(n, k));
    REQUIRE_MESSAGE(buckets, buckets.error().message);
    REQUIRE(buckets->size() == 4);
    Choices result;
    for (const Bucket& bucket : *buckets) {
        const auto constant = [&](const char* name) { return bucket.constants.find(name)->second; };
        CHECK(constant("lane_rows") == std::min<std::int64_t>(bucket.max_m, 16));
        result.emplace_back(constant("tiles_n"), constant("waves"), constant("blocks_ahead"));
    }
    CHECK(buckets->front().max_m == 4);
    CHECK(buckets->back().max_m == 32);
    return result;
}

std::int64_t tiles_n(std::int64_t n, std::int64_t k) {
    return std::get<0>(choices(n, k).front());
}

}  // namespace

TEST_CASE("derivation: the busiest compute unit's work-groups are as few as can be, then the tiles") {
    CHECK(tiles_n(16 * 160, 4096) == 1);  // one each, with some left idle
    CHECK(tiles_n(16 * 256, 4096) == 1);
    CHECK(tiles_n(16 * 320, 4096) == 2);  // one each instead of two
    CHECK(tiles_n(16 * 544, 4096) == 4);
    CHECK(tiles_n(16 * 1280, 4096) == 5);
    CHECK(tiles_n(16 * 257, 4096) == 1);  // a prime
    CHECK(tiles_n(16 * 514, 4096) == 2);  // two instead of three
    // Seven tiles would make one each, for 37 of the 256 units.
    CHECK(tiles_n(16 * 259, 4096) == 1);
}

TEST_CASE("derivation: K is split for the most blocks in flight, by eight waves where they do") {
    CHECK(choices(4096, 2048) == Choices{{1, 8, 2}, {1, 8, 2}, {1, 8, 2}, {1, 8, 2}});
    // Four blocks ahead are too many registers at M = 16.
    CHECK(choices(5120, 4096) == Choices{{2, 8, 4}, {2, 8, 4}, {2, 16, 2}, {2, 16, 2}});
    CHECK(choices(4096, 1024) == Choices{{1, 8, 1}, {1, 8, 1}, {1, 8, 1}, {1, 8, 1}});
    CHECK(choices(16, 128) == Choices{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}});
    CHECK(choices(48, 9 * 128) == Choices{{1, 9, 1}, {1, 9, 1}, {1, 9, 1}, {1, 9, 1}});
    CHECK(choices(48, 24 * 128) == Choices{{1, 8, 3}, {1, 8, 3}, {1, 8, 3}, {1, 12, 2}});
    // A prime beyond the waves of a work-group: one wave, one block at a time.
    CHECK(choices(48, 17 * 128).front() == std::tuple(1, 1, 1));
}

TEST_CASE("derivation: constants that the compiler spills with are left out") {
    // 100 and 112 registers by the template's count, in two rounds: legal, and spilt.
    for (const auto& [n, k] : {std::pair<std::int64_t, std::int64_t>{17408, 4096}, {20480, 4096}}) {
        const auto buckets = *derive_linear_small_m_gfx950(problem(n, k));
        CHECK(buckets.back().constants.find("tiles_n")->second == 4);
    }
}

TEST_CASE("derivation: LDS lets sixteen waves into a compute unit") {
    // Five tiles of columns by two of tokens would take 60 KiB for six waves.
    CHECK(choices(16 * 1280, 6 * 128).back() == std::tuple(4, 6, 1));
    CHECK(choices(16 * 1280, 6 * 128).front() == std::tuple(5, 6, 1));
}

TEST_CASE("derivation: a wave's share of K must be one that can be unrolled") {
    // Four tiles share a weight scale; five may lie across two, and hold one each: 10 blocks of a wave are
    // too many then, so a work-group takes fewer tiles.
    CHECK(tiles_n(16 * 1280, 32 * 128) == 5);
    CHECK(tiles_n(16 * 1280, 10 * 11 * 128) == 4);
    // Primes: 29 blocks are too many for 32 tokens, 37 for any.
    const auto ends_early = derive_linear_small_m_gfx950(problem(48, 29 * 128));
    REQUIRE(ends_early);
    CHECK(ends_early->back().max_m == 16);
    const auto none = derive_linear_small_m_gfx950(problem(48, 37 * 128));
    REQUIRE(!none);
    CHECK(none.error().code == kiln::ErrorCode::bad_input);
    CHECK(none.error().message.find("linear n=48 k=4736") != std::string::npos);
}

TEST_CASE("derivation: whatever the problem, the row is one that the operator accepts") {
    const auto seed = std::random_device()();
    MESSAGE("seed " << seed);
    std::mt19937_64 random(seed);
    for (int i = 0; i < 2000; ++i) {
        const std::int64_t n = 16 * static_cast<std::int64_t>(1 + random() % 3000);
        const std::int64_t k = 128 * static_cast<std::int64_t>(1 + random() % 200);
        CAPTURE(n);
        CAPTURE(k);
        kiln::tables::Row row;
        row.operator_name = "linear";
        row.problem = problem(n, k);
        row.target = *parse_target("gfx950");
        const auto buckets = linear().derive(row.problem, row.target);
        bool splits = false;
        for (std::int64_t waves = 1; waves <= 16; ++waves) {
            splits = splits || (k / 128 % waves == 0 && k / 128 / waves <= 32);
        }
        CHECK(buckets.has_value() == splits);
        if (!buckets) {
            continue;
        }
        row.buckets = *buckets;
        CHECK(check_row(row).empty());
    }
}

TEST_CASE("derivation: no rule for a processor, no constants for a problem") {
    const auto other = linear().derive(problem(16, 128), *parse_target("gfx942"));
    REQUIRE(!other);
    CHECK(other.error().code == kiln::ErrorCode::not_found);
    CHECK(other.error().message.find("gfx942") != std::string::npos);
    CHECK(linear().derive(problem(16, 128), *parse_target("gfx950:xnack-")));

    const auto huge = linear().derive(problem(std::int64_t{1} << 24, 1024), *parse_target("gfx950"));
    REQUIRE(!huge);
    CHECK(huge.error().code == kiln::ErrorCode::bad_input);
}
