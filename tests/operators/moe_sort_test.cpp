// Guards, buckets and launches of moe_sort, without a device.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "runtime/operators/moe_sort.hpp"
#include "runtime/operators/moe_sort_templates.hpp"
#include "runtime/operators/operator.hpp"

using namespace kiln;
using namespace kiln::operators;

namespace {

Problem problem(std::int64_t experts, std::int64_t slots, std::int64_t block_m, std::int64_t hidden = 0,
                const char* quant = "none") {
    auto complete_problem = complete(moe_sort(), {{"experts", experts},
                                                  {"slots", slots},
                                                  {"block_m", block_m},
                                                  {"hidden", hidden},
                                                  {"quant", std::string(quant)}});
    REQUIRE(complete_problem.has_value());
    return *std::move(complete_problem);
}

bool is_served(const Problem& asked) {
    const auto answer = moe_sort().judge(asked);
    if (!answer) {
        CHECK(answer.error().decline == KILN_DECLINE_DIMENSIONS);
    }
    return answer.has_value();
}

// "M: template" of each bucket.
std::vector<std::string> derived(const Problem& asked) {
    const auto buckets = moe_sort().derive(asked, {"gfx950", {}});
    REQUIRE(buckets.has_value());
    std::vector<std::string> all;
    for (const Bucket& bucket : *buckets) {
        const Template* source = find_template(bucket.template_id, "gfx950");
        REQUIRE(source != nullptr);
        CHECK(source->check(asked, bucket).empty());
        all.push_back(std::to_string(bucket.max_m) + ": " + bucket.template_id);
    }
    return all;
}

}  // namespace

TEST_CASE("moe_sort: every dimension has its bounds") {
    CHECK(is_served(problem(1, 1, 16)));
    CHECK(is_served(problem(1024, 16, 128, 262144, "mxfp8")));
    CHECK(is_served(problem(513, 11, 64, 8)));
    CHECK_FALSE(is_served(problem(0, 1, 16)));
    CHECK_FALSE(is_served(problem(1025, 1, 16)));
    CHECK_FALSE(is_served(problem(8, 0, 16)));
    CHECK_FALSE(is_served(problem(8, 17, 16)));
    CHECK_FALSE(is_served(problem(8, 1, 0)));
    CHECK_FALSE(is_served(problem(8, 1, 48)));
    CHECK_FALSE(is_served(problem(8, 1, 256)));
    CHECK_FALSE(is_served(problem(8, 1, 16, -8)));
    CHECK_FALSE(is_served(problem(8, 1, 16, 12)));
    CHECK_FALSE(is_served(problem(8, 1, 16, 262152)));
    CHECK_FALSE(is_served(problem(8, 1, 16, 0, "mxfp8")));
    CHECK_FALSE(is_served(problem(8, 1, 16, 1024, "mxfp8")));
}

TEST_CASE("moe_sort: the rule by pairs and experts") {
    using Lines = std::vector<std::string>;
    CHECK(derived(problem(256, 8, 16)) ==
          Lines{"4: moe_sort/compact", "32: moe_sort/distributed", "16777215: moe_sort/general"});
    CHECK(derived(problem(256, 8, 64)) ==
          Lines{"8: moe_sort/compact", "32: moe_sort/distributed", "16777215: moe_sort/general"});
    CHECK(derived(problem(257, 9, 128)) == Lines{"7: moe_sort/compact", "16777215: moe_sort/general"});
    CHECK_FALSE(moe_sort().derive(problem(8, 2, 16), {"sm_90a", {}}).has_value());
}

TEST_CASE("moe_sort: a template says what it can not hold, and takes no constants") {
    const Problem asked = problem(513, 11, 32);
    const auto faults = [&](const char* id, std::int64_t max_m, tables::Constants constants = {}) {
        std::vector<std::string> pointers;
        for (const tables::RowFault& fault :
             find_template(id, "gfx950")->check(asked, {max_m, id, std::move(constants)})) {
            pointers.push_back(fault.pointer);
        }
        return pointers;
    };
    using Pointers = std::vector<std::string>;
    CHECK(faults("moe_sort/compact", 5).empty());
    CHECK(faults("moe_sort/compact", 6) == Pointers{"/max_m"});
    CHECK(faults("moe_sort/distributed", 23).empty());  // the number of experts is no matter here
    CHECK(faults("moe_sort/distributed", 24) == Pointers{"/max_m"});
    CHECK(faults("moe_sort/general", (1 << 24) - 1).empty());
    CHECK(faults("moe_sort/general", 1 << 24) == Pointers{"/max_m"});
    CHECK(faults("moe_sort/general", 8, {{"waves", 4}}) == Pointers{"/constants/waves"});
}

TEST_CASE("moe_sort: kernels, grids and workspace of general follow the number of tokens") {
    const Bucket bucket{kMoeSortMostTokens, "moe_sort/general", {}};
    const KernelTemplate& general = moe_sort_general_gfx950();
    const auto grids = [&](const Problem& asked, std::int64_t m) {
        std::vector<std::uint32_t> all;
        for (const KernelLaunch& kernel : general.kernels(asked, bucket)) {
            all.push_back(kernel.shape_for(m).grid.x);
        }
        return all;
    };
    using Grids = std::vector<std::uint32_t>;
    const Problem sort_only = problem(513, 11, 32);
    const Problem zeroing = problem(513, 11, 32, 4096);
    const Problem quantising = problem(513, 11, 32, 4096, "mxfp8");
    CHECK(grids(sort_only, 1) == Grids{1, 9 + 1});
    CHECK(grids(sort_only, 100) == Grids{5, 9 + 5});
    CHECK(grids(sort_only, kMoeSortMostTokens) == Grids{64, 9 + 64});
    CHECK(grids(zeroing, 100) == Grids{64 + 200, 9 + 5});
    CHECK(grids(quantising, 100) == Grids{5, 9 + 5, 200});
    CHECK(grids(quantising, kMoeSortMostTokens) == Grids{64, 9 + 64, 65536});
    CHECK(general.kernels(quantising, bucket)[2].symbol ==
          "kiln_moe_sort_general_e513_s11_b32_h4096_mxfp8_quantise");

    // Counts of experts, then of up to 256 runs and experts, then a row for each pair.
    const auto scratch = [&](const Problem& asked, std::int64_t m) {
        const WorkspaceNeed need = general.workspace(asked, bucket, m);
        CHECK(need.zeroed == 4);
        return need.scratch;
    };
    CHECK(scratch(sort_only, 1) == 4 * (2 * 513 + 513));
    CHECK(scratch(sort_only, 100) == 4 * (2 * 513 + 18 * 513));
    CHECK(scratch(quantising, 100) == 4 * (2 * 513 + 18 * 513 + 1100));
    CHECK(scratch(sort_only, kMoeSortMostTokens) == 4 * (2 * 513 + 256 * 513));
    for (std::int64_t m = 1, last = 0; m < 4000; m += 7) {
        CHECK(scratch(quantising, m) >= last);
        last = scratch(quantising, m);
    }
}
