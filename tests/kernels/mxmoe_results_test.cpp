// What the couples of fused_moe/mxmoe compute: every one of them, at few and many tokens and experts, however
// the tokens are routed, in both orders of w13.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "mxmoe_cases.hpp"
#include "runtime/tune/candidates.hpp"

using namespace kiln;
using namespace kiln::kernels_test;
using operators::FusedMoeProblem;

namespace {

constexpr std::array<std::int64_t, 13> kTokens = {1, 8, 16, 17, 32, 33, 64, 100, 128, 129, 256, 512, 1024};
constexpr std::array<std::int64_t, 4> kExperts = {16, 128, 512, 513};
constexpr std::array<std::int64_t, 2> kIntermediates = {256, 512};

// One launch, each member an index.
struct Case {
    std::size_t couple, tokens, experts, intermediate, interleaved, routing;

    [[nodiscard]] std::array<std::size_t, 6> factors() const {
        return {couple, tokens, experts, intermediate, interleaved, routing};
    }
};
using Levels = std::array<std::size_t, 6>;
Levels levels() {
    return {mxmoe_couples().size(), kTokens.size(), kExperts.size(), kIntermediates.size(), 2,
            kRoutings.size()};
}

FusedMoeProblem problem_of(const Case& one, const std::array<std::int64_t, 4>& slots,
                           const std::array<std::int64_t, 4>& hidden) {
    return {.hidden = hidden[one.experts],
            .intermediate = kIntermediates[one.intermediate],
            .experts = kExperts[one.experts],
            .slots = slots[one.experts],
            .fp8 = false,
            .interleaved = one.interleaved != 0};
}

// So that any two values of different factors meet, and as few kernels as that allows are compiled: of one
// block_m and one number of experts there is one problem.
std::vector<Case> pairwise() {
    const std::vector<tables::Constants> couples = mxmoe_couples();
    std::map<std::int64_t, std::size_t> blocks;  // by block_m, their number
    std::vector<Case> cases;
    for (std::size_t couple = 0; couple < couples.size(); ++couple) {
        const std::int64_t block_m = couples[couple].find("block_m")->second;
        const std::size_t block = blocks.try_emplace(block_m, blocks.size()).first->second;
        for (std::size_t tokens = 0; tokens < kTokens.size(); ++tokens) {
            const std::size_t experts = (couple + tokens) % kExperts.size();
            const std::size_t problem = (experts + block) % 4;
            cases.push_back({couple, tokens, experts, problem % 2, problem / 2,
                             (couple / 4 + tokens) % kRoutings.size()});
        }
    }
    return cases;
}

// Every combination.
std::vector<Case> product() {
    const Levels all = levels();
    std::vector<Case> cases;
    std::size_t count = 1;
    for (const std::size_t level : all) {
        count *= level;
    }
    for (std::size_t i = 0; i < count; ++i) {
        std::size_t rest = i;
        std::array<std::size_t, 6> one{};
        for (std::size_t factor = 0; factor < one.size(); ++factor) {
            one[factor] = rest % all[factor];
            rest /= all[factor];
        }
        cases.push_back({one[0], one[1], one[2], one[3], one[4], one[5]});
    }
    return cases;
}

// Pairs of values that no case has.
std::size_t count_missing_pairs(const std::vector<Case>& cases) {
    const Levels all = levels();
    std::size_t missing = 0;
    for (std::size_t a = 0; a < all.size(); ++a) {
        for (std::size_t b = a + 1; b < all.size(); ++b) {
            std::set<std::pair<std::size_t, std::size_t>> met;
            for (const Case& one : cases) {
                met.emplace(one.factors()[a], one.factors()[b]);
            }
            missing += all[a] * all[b] - met.size();
        }
    }
    return missing;
}

// Problem by problem, since inputs and references are large.
void check_cases(const std::vector<Case>& cases, const std::array<std::int64_t, 4>& slots,
                 const std::array<std::int64_t, 4>& hidden) {
    const std::vector<tables::Constants> couples = mxmoe_couples();
    struct Own {
        FusedMoeProblem problem;
        std::map<std::size_t, std::size_t> pipelines;  // by couple, their place
        std::vector<Case> cases;
    };
    std::map<std::tuple<std::size_t, std::size_t, std::size_t>, Own> problems;
    std::vector<operators::Pipeline> wanted;
    for (const Case& one : cases) {
        Own& own = problems[{one.experts, one.intermediate, one.interleaved}];
        own.problem = problem_of(one, slots, hidden);
        own.cases.push_back(one);
        if (own.pipelines.try_emplace(one.couple, wanted.size()).second) {
            wanted.push_back(mxmoe_pipeline(own.problem, kTokens.back(), couples[one.couple]));
        }
    }
    MxmoeDevice device;
    const std::vector<LoadedPipeline> loaded = device.load(std::move(wanted));
    std::uint64_t seed = 40;
    for (const auto& [key, own] : problems) {
        MxmoeInputs inputs(device, own.problem, kTokens.back(), ++seed);
        for (const Case& one : own.cases) {
            const LoadedPipeline& pipeline = loaded[own.pipelines.at(one.couple)];
            const Routing routing = kRoutings[one.routing];
            const std::int64_t m = kTokens[one.tokens];
            CAPTURE(one.routing);
            check_mxmoe_run(pipeline, device.run(pipeline, inputs.weights(), inputs.arrays(routing), m),
                            inputs.arrays(routing), inputs.reference(routing), m);
        }
    }
}

}  // namespace

TEST_CASE(
    "mxmoe results: the fourteen couples, any two choices of M, experts, columns and routing together") {
    REQUIRE(mxmoe_couples().size() == 14);
    const std::vector<Case> cases = pairwise();
    REQUIRE(count_missing_pairs(cases) == 0);
    REQUIRE(count_missing_pairs({cases.begin(), cases.end() - 13}) > 0);
    MESSAGE(cases.size() << " launches");
    check_cases(cases, {3, 3, 2, 4}, {512, 256, 256, 512});
}

// Tests of their own run the rest: tens of minutes.
TEST_CASE("mxmoe product: the fourteen couples, every M, experts, columns and routing with each other" *
          doctest::skip()) {
    const std::vector<Case> cases = product();
    MESSAGE(cases.size() << " launches");
    // An atomic sum rounds to bf16 with every slot. Of eight or more that alone may exceed the bound among as
    // few outputs as a token has here, though not on average.
    check_cases(cases, {4, 5, 3, 6}, {512, 256, 256, 768});
}

TEST_CASE(
    "mxmoe candidates: all that a tuner tries of 512 experts, 10 slots, 4096 and 512 compile and serve" *
    doctest::skip()) {
    const FusedMoeProblem problem{.hidden = 4096, .intermediate = 512, .experts = 512, .slots = 10};
    const auto target = *tables::parse_target("gfx950");
    MxmoeDevice device;
    const operators::FusedMoeArrays arrays = operators::make_fused_moe_case(problem, 128, 7);
    const operators::MxmoeReference reference = operators::mxmoe_reference(arrays);
    const LoadedMoe weights(device.device(), arrays);
    std::size_t tried = 0;
    for (const std::int64_t m : {4, 8, 16, 32, 64, 128}) {
        std::vector<operators::Pipeline> wanted;
        for (const tune::Candidate& candidate :
             tune::candidates(operators::fused_moe(), moe_problem(problem), m, target, nullptr)) {
            if (candidate.bucket.template_id == "fused_moe/mxmoe") {
                wanted.push_back(mxmoe_pipeline(problem, m, candidate.bucket.constants));
            }
        }
        for (const LoadedPipeline& candidate : device.load(std::move(wanted))) {
            check_mxmoe_run(candidate, device.run(candidate, weights, arrays, m), arrays, reference, m);
            ++tried;
        }
    }
    CHECK(tried == 84);
}
