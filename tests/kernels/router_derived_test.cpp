// What the rule of router/one_launch derives, through the real compiler: whatever constants it chooses,
// what it says of registers and LDS holds.
#include <doctest/doctest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "budget_check.hpp"

using namespace kiln;
using namespace kiln::kernels_test;

TEST_CASE("derived: every bucket of router, shipped or of any size, compiles within its budget") {
    std::vector<operators::Specialisation> wanted = shipped_specialisations("gfx950", "router");
    for (const std::int64_t hidden : {8, 520, 2880, 5120, 8192, 12288, 16384, 32768, 65536}) {
        for (const auto& [experts, top_k] :
             {std::pair{16, 16}, std::pair{257, 8}, std::pair{513, 10}, std::pair{1024, 16}}) {
            const auto problem = operators::complete(operators::router(), {{"hidden", std::int64_t{hidden}},
                                                                           {"experts", std::int64_t{experts}},
                                                                           {"top_k", std::int64_t{top_k}}});
            REQUIRE(problem);
            const auto buckets = operators::router().derive(*problem, *tables::parse_target("gfx950"));
            REQUIRE(buckets);
            for (const operators::Bucket& bucket : *buckets) {
                wanted.push_back(specialise_shape(operators::router(), *problem, bucket));
            }
        }
    }
    check_budgets(std::move(wanted));
}
