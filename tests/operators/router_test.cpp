// The operator `router`: what it declines, what its template demands, and the constants that its rule makes.
#include "runtime/operators/router.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "runtime/operators/guards.hpp"
#include "runtime/operators/router_one_launch.hpp"

using namespace kiln::operators;
using kiln::tables::parse_target;
using Words = std::vector<std::string>;

namespace {

Problem problem(const Words& words) {
    const auto parsed = parse_problem(router(), words);
    REQUIRE_MESSAGE(parsed, parsed.error().message);
    return *parsed;
}
Problem problem(std::int64_t hidden, std::int64_t experts, std::int64_t top_k, std::int64_t shared = 1) {
    return *complete(router(),
                     {{"hidden", hidden}, {"experts", experts}, {"top_k", top_k}, {"shared", shared}});
}

std::int32_t decline_of(const Problem& asked) {
    const auto judged = router().judge(asked);
    return judged ? 0 : judged.error().decline;
}

Bucket bucket(std::int64_t max_m, std::int64_t rows, std::int64_t waves) {
    return {max_m, "router/one_launch", {{"rows", rows}, {"waves", waves}}};
}
std::string fault_of(const Problem& asked, const Bucket& wanted) {
    const auto faults = router_one_launch_gfx950().check(asked, wanted);
    return faults.empty() ? "" : faults.front().pointer;
}

// max_m, rows, waves of each bucket.
using Choices = std::vector<std::vector<std::int64_t>>;
Choices choices(const Problem& asked) {
    const auto buckets = router().derive(asked, *parse_target("gfx950"));
    REQUIRE_MESSAGE(buckets, buckets.error().message);
    Choices result;
    for (const Bucket& made : *buckets) {
        result.push_back({made.max_m, made.constants.at("rows"), made.constants.at("waves")});
    }
    return result;
}

}  // namespace

TEST_CASE("router: a problem in words takes its defaults, and each guard declines with its own reason") {
    CHECK(format_problem(router(), problem({"hidden=4096", "experts=512", "top_k=10"})) ==
          "hidden=4096 experts=512 top_k=10");
    const auto reason = [](const char* word) {
        const auto judged = router().judge(problem({"hidden=4096", "experts=512", "top_k=10", word}));
        REQUIRE(!judged);
        CHECK_MESSAGE(judged.error().error.message.find(word) != std::string::npos, word);
        return judged.error().decline;
    };
    CHECK(reason("x_type=fp16") == KILN_DECLINE_X_TYPE);
    CHECK(reason("x_inner_stride=2") == KILN_DECLINE_X_INNER_STRIDE);
    CHECK(reason("gate_type=fp32") == KILN_DECLINE_W_TYPE);
    CHECK(reason("gate_strided=1") == KILN_DECLINE_GATE_STRIDE);
    CHECK(reason("weights_type=bf16") == KILN_DECLINE_OUT_TYPE);
    CHECK(reason("scoring=sigmoid") == KILN_DECLINE_SCORING);
    CHECK(reason("score_bias=1") == KILN_DECLINE_SCORING);
    CHECK(reason("expert_groups=8") == KILN_DECLINE_SCORING);
    CHECK(reason("renormalise=0") == KILN_DECLINE_RENORMALISE);
    CHECK(reason("expert_parallel=2") == KILN_DECLINE_EXPERT_PARALLEL);
    CHECK(reason("expert_map=1") == KILN_DECLINE_EXPERT_MAP);
    CHECK(reason("simulated=1") == KILN_DECLINE_SIMULATED_ROUTING);
    CHECK(decline_of(problem(4096, 512, 10, 2)) == KILN_DECLINE_SHARED_EXPERTS);
    CHECK(decline_of(problem(4096, 512, 10, -1)) == KILN_DECLINE_SHARED_EXPERTS);
}

TEST_CASE("router: any hidden that loads of 16 bytes divide, up to 1024 experts and 16 choices") {
    for (const Problem& served : {problem(8, 1, 1, 0), problem(4096, 1024, 16), problem(2880, 129, 4, 0)}) {
        CHECK(decline_of(served) == 0);
    }
    for (const Problem& refused :
         {problem(0, 16, 4), problem(4100, 16, 4), problem(-8, 16, 4), problem(8, 0, 1), problem(8, 1025, 4),
          problem(8, 16, 0), problem(8, 64, 17), problem(8, 4, 5)}) {
        CHECK(decline_of(refused) == KILN_DECLINE_DIMENSIONS);
    }
}

TEST_CASE("router/one_launch: constants must be there, be known, and fit the registers") {
    const Problem asked = problem(4096, 512, 10);
    CHECK(fault_of(asked, bucket(8, 2, 8)) == "");
    CHECK(fault_of(asked, bucket(16, 4, 8)) == "");
    CHECK(fault_of(asked, {8, "router/one_launch", {{"rows", 2}}}) == "/constants");
    CHECK(fault_of(asked, {8, "router/one_launch", {{"rows", 2}, {"waves", 8}, {"tiles", 1}}}) ==
          "/constants/tiles");
    CHECK(fault_of(asked, bucket(8, 2, 0)) == "/constants/waves");
    CHECK(fault_of(asked, bucket(8, 2, 17)) == "/constants/waves");
    CHECK(fault_of(asked, bucket(8, 0, 8)) == "/constants/rows");
    CHECK(fault_of(asked, bucket(8, 9, 8)) == "/constants/rows");  // more logits than lanes
    CHECK(fault_of(asked, bucket(65, 1, 8)) == "/max_m");
    CHECK(fault_of(asked, bucket(1, 16, 1)) == "/constants/rows");  // eight steps of 16 rows
    CHECK(fault_of(problem(std::int64_t{1} << 40, 16, 4), bucket(1, 1, 16)) == "/constants/rows");
}

TEST_CASE("router/one_launch: launch, workspace and constants follow the problem") {
    const Problem asked = problem(4096, 513, 10);
    const KernelTemplate& source = router_one_launch_gfx950();
    const auto kernels = source.kernels(asked, bucket(8, 2, 8));
    REQUIRE(kernels.size() == 1);
    CHECK(kernels.front().symbol == "kiln_router_h4096_e513_k10_s1_m8");
    for (const std::int64_t m : {1, 8}) {
        CHECK(kernels.front().shape_for(m).grid.x == 257);
        CHECK(kernels.front().shape_for(m).block.x == 512);
    }
    const WorkspaceNeed need = source.workspace(asked, bucket(8, 2, 8), 3);
    CHECK(need.zeroed == 17 * 128);
    CHECK(need.scratch == 8 * (520 * 2 + 4));
    CHECK(source.constants(asked, bucket(8, 2, 8)) ==
          std::vector<std::pair<std::string, std::int64_t>>{{"kHidden", 4096},
                                                            {"kExperts", 513},
                                                            {"kTopK", 10},
                                                            {"kShared", 1},
                                                            {"kMaxM", 8},
                                                            {"kRows", 2},
                                                            {"kWaves", 8}});
}

TEST_CASE("router derivation: rows leave a work-group for each unit, waves have two pieces a lane at most") {
    CHECK(choices(problem(4096, 512, 10)) == Choices{{1, 2, 4}, {2, 2, 4}, {4, 2, 4}, {8, 2, 8}});
    CHECK(choices(problem(7168, 256, 8)) == Choices{{1, 1, 7}, {2, 1, 7}, {4, 1, 7}, {8, 1, 8}});
    CHECK(choices(problem(2048, 1024, 10)) == Choices{{1, 4, 4}, {2, 4, 4}, {4, 4, 4}, {8, 4, 4}});
    CHECK(choices(problem(2880, 128, 4, 0)) == Choices{{1, 1, 4}, {2, 1, 4}, {4, 1, 4}, {8, 1, 6}});
    CHECK(choices(problem(8, 16, 4)) == Choices{{1, 1, 1}, {2, 1, 1}, {4, 1, 1}, {8, 1, 1}});
    // Fewer rows where registers are short.
    CHECK(choices(problem(65536, 1024, 4)).back() == std::vector<std::int64_t>{8, 2, 16});
}

TEST_CASE("router derivation: each bucket has a budget") {
    const auto small = *router().derive(problem(4096, 512, 10), *parse_target("gfx950"));
    CHECK(small.back().budget == kiln::tables::Budget{.waves_per_simd = 8, .lds_bytes = 8 * 16 * 4 + 4});
    const auto large = *router().derive(problem(7168, 1024, 10), *parse_target("gfx950"));
    CHECK(large.front().budget == kiln::tables::Budget{.waves_per_simd = 4, .lds_bytes = 7 * 4 * 4 + 4});
}

TEST_CASE("router derivation: whatever the problem, the row is one that the operator accepts") {
    const auto seed = std::random_device()();
    MESSAGE("seed " << seed);
    std::mt19937_64 random(seed);
    for (int i = 0; i < 1000; ++i) {
        const auto experts = static_cast<std::int64_t>(1 + random() % 1024);
        kiln::tables::Row row;
        row.operator_name = "router";
        row.problem = problem(8 * static_cast<std::int64_t>(1 + random() % 8192), experts,
                              1 + static_cast<std::int64_t>(random() % 16) % experts,
                              static_cast<std::int64_t>(random() % 2));
        row.target = *parse_target("gfx950");
        CAPTURE(format_problem(router(), row.problem));
        const auto buckets = router().derive(row.problem, row.target);
        REQUIRE(buckets);
        row.buckets = *buckets;
        CHECK(row.buckets.back().max_m == 8);
        CHECK(check_row(row).empty());
    }
}

TEST_CASE("router derivation: no rule for a processor, no constants for a problem") {
    const auto other = router().derive(problem(4096, 512, 10), *parse_target("sm_90a"));
    REQUIRE(!other);
    CHECK(other.error().code == kiln::ErrorCode::not_found);
    const auto long_rows = router().derive(problem(1 << 20, 512, 10), *parse_target("gfx950"));
    REQUIRE(!long_rows);
    CHECK(long_rows.error().code == kiln::ErrorCode::bad_input);
    CHECK(long_rows.error().message.find("1048576") != std::string::npos);
}
