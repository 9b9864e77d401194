#include "runtime/tuned_config/kernel_names.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace kiln::tuned_config;
using kiln::tables::Constants;

namespace {

KernelNames names(const std::string& first, const std::string& second) {
    return {"flydsl_mxmoe_g1_a4w4_" + first, "flydsl_mxmoe_g2_a4w4_" + second};
}

std::string why_not(const KernelNames& asked) {
    const auto constants = constants_of(asked);
    REQUIRE(!constants);
    return constants.error();
}

}  // namespace

TEST_CASE("KernelNamesBecomeConstants") {
    CHECK(*constants_of(names("16x256x256_f16in_nt", "16x256x256_atomic")) ==
          Constants{{"block_m", 16}, {"f16in", 1}, {"g1_nt", 1}, {"g2", 0}, {"g2_nt", 0}});
    CHECK(*constants_of(names("32x256x256", "32x256x256_atomic_nt")) ==
          Constants{{"block_m", 32}, {"f16in", 0}, {"g1_nt", 0}, {"g2", 0}, {"g2_nt", 1}});
    CHECK(*constants_of(names("128x256x256", "128x256x256")) ==
          Constants{{"block_m", 128}, {"f16in", 0}, {"g1_nt", 0}, {"g2", 1}, {"g2_nt", 0}});
    CHECK(*constants_of(names("64x256x256", "64x256x256_nonatomic")) ==
          *constants_of(names("64x256x256", "64x256x256")));
}

TEST_CASE("KernelNamesWithoutACounterpartSayWhy") {
    CHECK(why_not({"moe_ck2stages_gemm1", "x"}) ==
          "kernelName1: no kernel here stands for \"moe_ck2stages_gemm1\"");
    CHECK(why_not({names("16x256x256", "").first, ""}) == "kernelName2: no kernel here stands for \"\"");
    CHECK(why_not(names("128x256x256", "128x256x256_f4out")) ==
          "kernelName2: nothing here does what \"f4out\" says in \"flydsl_mxmoe_g2_a4w4_128x256x256_f4out\"");
    CHECK(why_not(names("128x256x256_xcd4", "128x256x256")) ==
          "kernelName1: nothing here does what \"xcd4\" says in \"flydsl_mxmoe_g1_a4w4_128x256x256_xcd4\"");
    CHECK(why_not(names("16x256x256", "32x256x256")) ==
          "kernelName1 has tiles of 16 rows, kernelName2 of 32");
    for (const char* tile : {"16x128x256", "x256x256", "16", "16x256x2560", "16x256x256nt"}) {
        CHECK(why_not(names(tile, "16x256x256")).starts_with("kernelName1: no kernel"));
    }
    CHECK(
        why_not(names("16x256x256_", "16x256x256")).starts_with("kernelName1: nothing here does what \"\""));
}

TEST_CASE("ConstantsBecomeTheNamesThatTheyCameFrom") {
    int couples = 0;
    for (const std::int64_t block_m : {16, 32, 64, 128}) {
        for (int bits = 0; bits < 16; ++bits) {
            const Constants constants = {{"block_m", block_m},
                                         {"f16in", bits & 1},
                                         {"g1_nt", bits >> 1 & 1},
                                         {"g2", bits >> 2 & 1},
                                         {"g2_nt", bits >> 3 & 1}};
            const auto made = names_of(constants);
            REQUIRE(made);
            CHECK(*constants_of(*made) == constants);
            ++couples;
        }
    }
    CHECK(couples == 64);
    CHECK(*names_of({{"block_m", 128}, {"f16in", 0}, {"g1_nt", 0}, {"g2", 1}, {"g2_nt", 0}}) ==
          names("128x256x256", "128x256x256"));

    const Constants fused = {{"block_m", 128}, {"f16in", 0}, {"g1_nt", 0}, {"g2", 2}, {"g2_nt", 0}};
    CHECK(names_of(fused).error() == "g2=2: nonatomic with its combine fused has no published name");
    // Constants that a name can not tell are not dropped.
    CHECK(!names_of({{"block_m", 16}, {"f16in", 1}, {"g1_nt", 1}, {"g2", 0}}));
    CHECK(!names_of({{"block_m", 16}, {"f16in", 1}, {"g1_nt", 1}, {"g2", 0}, {"g2_nt", 2}}));
    CHECK(!names_of({{"block_m", 16}, {"f16in", 1}, {"g1_nt", 1}, {"g2", 0}, {"g2_nt", 0}, {"waves", 4}}));
}
