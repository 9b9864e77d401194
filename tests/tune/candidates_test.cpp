// Spaces of the templates, and what becomes of them.

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "runtime/operators/demands.hpp"
#include "runtime/tune/candidates.hpp"

using kiln::operators::Problem;
using kiln::tables::Bucket;
using kiln::tables::Constants;
using kiln::tune::Candidate;
using kiln::tune::candidates;

namespace {

Problem problem_of(const kiln::operators::Operator& op, const std::vector<std::string>& words) {
    auto problem = kiln::operators::parse_problem(op, words);
    REQUIRE_MESSAGE(problem, problem.error().message);
    return *problem;
}

}  // namespace

TEST_CASE("CombinationsAreThoseOfEveryProductInOrder") {
    const auto all = kiln::tune::combinations({{{"a", {1, 2}}, {"b", {3, 4}}}, {{"a", {7}}}, {}});
    CHECK(all == std::vector<Constants>{{{"a", 1}, {"b", 3}},
                                        {{"a", 1}, {"b", 4}},
                                        {{"a", 2}, {"b", 3}},
                                        {{"a", 2}, {"b", 4}},
                                        {{"a", 7}},
                                        {}});
    CHECK(kiln::tune::combinations({}).empty());
    CHECK(kiln::tune::combinations({{{"a", {}}}}).empty());
}

TEST_CASE("SpacesAreOfASizeThatCanBeTimedAndHoldNothingIllegal") {
    struct Case {
        const kiln::operators::Operator& op;
        std::vector<std::string> words;
        std::string target;
        std::vector<std::int64_t> values;
        std::size_t least, most;
    };
    const std::vector<std::string> moe = {"hidden=4096", "intermediate=512", "experts=512", "slots=10",
                                          "weights=mxfp4"};
    const Case cases[] = {
        {kiln::operators::linear(), {"n=5120", "k=4096"}, "sm_90a", {8, 16, 24, 32}, 15, 90},
        {kiln::operators::linear(), {"n=4096", "k=2048"}, "sm_90a", {8, 16, 24, 32}, 15, 90},
        {kiln::operators::linear(), {"n=4096", "k=1024"}, "sm_90a", {8, 32}, 8, 80},
        {kiln::operators::linear(), {"n=20480", "k=4096"}, "sm_90a", {8, 32}, 8, 80},
        {kiln::operators::linear(), {"n=5120", "k=4096"}, "gfx950", {4, 8, 16, 32}, 8, 70},
        {kiln::operators::linear(), {"n=4096", "k=2048"}, "gfx950", {4, 8, 16, 32}, 8, 70},
        {kiln::operators::linear(), {"n=16", "k=512"}, "gfx950", {4}, 3, 12},
        {kiln::operators::router(), {"hidden=4096", "experts=512", "top_k=10"}, "gfx950", {1, 8}, 5, 9},
        {kiln::operators::fused_moe(), moe, "gfx950", {1, 4, 16}, 20, 80},
        {kiln::operators::moe_sort(), {"experts=512", "slots=10", "block_m=32"}, "gfx950", {4, 16, 64}, 1, 3},
    };
    for (const Case& one : cases) {
        const Problem problem = problem_of(one.op, one.words);
        for (const std::int64_t m : one.values) {
            const auto target = *kiln::tables::parse_target(one.target);
            const auto found = candidates(one.op, problem, m, target, nullptr);
            INFO(one.op.name() << " " << one.words.front() << " for " << one.target << " at " << m << ": "
                               << found.size());
            CHECK(found.size() >= one.least);
            CHECK(found.size() <= one.most);
            for (std::size_t i = 0; i < found.size(); ++i) {
                CHECK(found[i].bucket.max_m == m);
                const auto* source = one.op.find_template(found[i].bucket.template_id, target.processor);
                REQUIRE(source != nullptr);
                CHECK(source->check(problem, found[i].bucket).empty());
                for (std::size_t j = 0; j < i; ++j) {
                    CHECK_FALSE(found[i] == found[j]);
                }
            }
        }
    }
}

TEST_CASE("ThePresentBucketIsTriedAsItStandsAndEndingAtM") {
    const Problem problem = problem_of(kiln::operators::linear(), {"n=16", "k=512"});
    const auto target = *kiln::tables::parse_target("gfx950");
    // Not in the declared space: three waves would be, but not for this k.
    const Bucket present{
        32, "linear/small_m", {{"tiles_n", 1}, {"waves", 1}, {"lane_rows", 16}, {"blocks_ahead", 1}}};
    const auto found = candidates(kiln::operators::linear(), problem, 8, target, &present);
    REQUIRE(found.size() >= 3);
    CHECK(found.front().present);
    CHECK(found.front().bucket.max_m == 32);
    CHECK(found.back().bucket == Bucket{8, present.template_id, present.constants});
    CHECK_FALSE(found.back().present);

    // Of a template that declares no space there is nothing else.
    const auto other = *kiln::tables::parse_target("gfx942");
    CHECK(candidates(kiln::operators::linear(), problem, 8, other, &present).size() == 2);
}

TEST_CASE("EveryCoupleOfTheMxmoePipelineIsTriedAtEachOfTheSixPublishedM") {
    const Problem problem =
        problem_of(kiln::operators::fused_moe(),
                   {"hidden=4096", "intermediate=512", "experts=512", "slots=10", "weights=mxfp4"});
    const auto target = *kiln::tables::parse_target("gfx950");
    std::size_t couples = 0;
    for (const std::int64_t m : {4, 8, 16, 32, 64, 128}) {
        const auto found = candidates(kiln::operators::fused_moe(), problem, m, target, nullptr);
        couples += static_cast<std::size_t>(std::ranges::count(
            found, "fused_moe/mxmoe", [](const auto& one) { return one.bucket.template_id; }));
    }
    CHECK(couples == 84);

    const Bucket present{64,
                         "fused_moe/small_m",
                         {{"columns", 16}, {"gate_up_waves", 4}, {"row_tiles", 1}, {"down_waves", 8}}};
    const std::vector<std::string> asked{"fused_moe/mxmoe"};
    const auto only = candidates(kiln::operators::fused_moe(), problem, 64, target, &present, asked);
    REQUIRE(only.size() == 1 + 14);
    CHECK(only.front().present);
}

TEST_CASE("OfAProblemWithADemandOnlyWhatMeetsItIsTried") {
    const auto& op = kiln::operators::fused_moe();
    const std::vector<std::string> words = {"hidden=512", "intermediate=256", "experts=16",
                                            "slots=4",    "weights=mxfp4",    "deterministic=1"};
    const auto target = *kiln::tables::parse_target("gfx950");
    const Problem problem = problem_of(op, words);
    const auto plain = candidates(op, kiln::operators::without_demands(op, problem), 16, target, nullptr);
    const auto found = candidates(op, problem, 16, target, nullptr);
    std::vector<Candidate> expected = plain;
    std::erase_if(expected, [&](const Candidate& one) {
        const auto* source = op.find_template(one.bucket.template_id, target.processor);
        return !source->is_deterministic(problem, one.bucket);
    });
    CHECK(found == expected);
    CHECK(expected.size() < plain.size());
    CHECK(std::ranges::any_of(
        found, [](const Candidate& one) { return one.bucket.template_id == "fused_moe/mxmoe"; }));
}
