// What the rules of fused_moe derive, through the real compiler: whatever constants they choose, what they
// say of registers and LDS holds.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "budget_check.hpp"

using namespace kiln;
using namespace kiln::kernels_test;

TEST_CASE("derived: every bucket of fused_moe of any size compiles within its budget") {
    struct Size {
        std::int64_t hidden, intermediate, experts, slots;
    };
    std::vector<operators::Specialisation> wanted;
    for (const auto& [hidden, intermediate, experts, slots] : {Size{128, 64, 1, 1},
                                                               {128, 128, 1024, 16},
                                                               {384, 192, 65, 3},
                                                               {640, 1920, 64, 5},
                                                               {256, 256, 16, 4},
                                                               {7168, 3072, 385, 7}}) {
        for (const char* weights : {"mxfp4", "fp8"}) {
            const auto problem =
                operators::complete(operators::fused_moe(), {{"hidden", hidden},
                                                             {"intermediate", intermediate},
                                                             {"experts", experts},
                                                             {"slots", slots},
                                                             {"weights", std::string(weights)}});
            REQUIRE(problem);
            if (!operators::fused_moe().judge(*problem)) {
                continue;  // fp8 and an intermediate of 192
            }
            const auto buckets = operators::fused_moe().derive(*problem, *tables::parse_target("gfx950"));
            REQUIRE(buckets);
            for (const operators::Bucket& bucket : *buckets) {
                for (auto& stage : pipeline_for(operators::fused_moe(), *problem, bucket).stages) {
                    wanted.push_back(std::move(stage.specialisation));
                }
            }
        }
    }
    check_budgets(std::move(wanted));
}
