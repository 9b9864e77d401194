// What the code of fused_moe/mxmoe looks like, and what it executes: as many matrix products as its tiles
// need and no more, no time lost in LDS, registers and LDS for the waves that the README promises.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "instructions.hpp"
#include "mxmoe_cases.hpp"
#include "runtime/compile/occupancy.hpp"

using namespace kiln;
using namespace kiln::kernels_test;
using operators::FusedMoeProblem;

namespace {

// The problem that is published.
constexpr FusedMoeProblem kProblem{.hidden = 4096, .intermediate = 512, .experts = 512, .slots = 10};
// Of one instruction: 16 rows times 16 columns, 128 k.
constexpr std::int64_t kProductElements = 16 * 16 * 128;

struct Stage {
    std::string_view name;
    std::int64_t block_m;
    bool reads_past_caches;
    const LoadedPipeline::Stage& loaded;
};

// `most_lds` above `lds` where alignment may add to it.
void check_code(const Stage& stage, std::int64_t lds, std::int64_t most_lds) {
    const Built& built = stage.loaded.built;
    const compile::KernelInfo kernel = built.kernel();
    CAPTURE(kernel.name);
    CHECK(built.result.log.empty());
    CHECK(kernel.scratch_bytes == 0);
    CHECK(kernel.vgpr_spills == 0);
    CHECK(kernel.sgpr_spills == 0);
    CHECK(kernel.agprs == 0);
    CHECK(kernel.max_threads == (stage.block_m == 128 ? 512 : 256));
    CHECK(kernel.lds_bytes >= lds);
    CHECK(kernel.lds_bytes <= most_lds);

    const Instructions code(built.result.listing, kernel.name);
    const auto count = [&code](std::string_view part) {
        return code.count([part](std::string_view text) { return contains(text, part); });
    };
    CHECK(count("accvgpr") == 0);
    CHECK(count("flat_") == 0);
    CHECK(count("scratch_") == 0);
    // Nothing but weights is read past the caches.
    CHECK((count(" nt") > 0) == stage.reads_past_caches);
    const bool multiplies = stage.block_m != 0;
    CHECK((count("mfma") > 0) == multiplies);
    CHECK(count("v_mfma_scale_f32_16x16x128_f8f6f4") == count("mfma"));
    if (multiplies) {
        const std::int64_t waves = stage.block_m == 128 ? 8 : 4;
        const std::int64_t promised = stage.block_m <= 32 ? 3 : 2;
        CHECK(compile::waves_per_simd(kernel, waves, kernel.lds_bytes) >= promised);
    }
}

void check_listing(const LoadedPipeline& loaded, const tables::Constants& couple) {
    const auto constant = [&couple](const char* name) { return couple.find(name)->second; };
    const std::int64_t block_m = constant("block_m");
    const auto stage = [&](std::string_view name, std::int64_t rows, bool nt) {
        return Stage{name, rows, nt, *loaded.stages[loaded.find(name)]};
    };
    const std::int64_t g1_lds = 256 * block_m + (block_m == 128 ? 4096 : 2048);
    check_code(stage("g1", block_m, constant("g1_nt") != 0), g1_lds, g1_lds);
    check_code(stage("g2", block_m, constant("g2_nt") != 0), 520 * block_m,
               520 * block_m + (constant("g2") == 2 ? 16 : 0));
    REQUIRE((loaded.find("quantise") < loaded.stages.size()) == (constant("f16in") == 0));
    if (constant("f16in") == 0) {
        check_code(stage("quantise", 0, false), 0, 0);
    }
    REQUIRE((loaded.find("combine") < loaded.stages.size()) == (constant("g2") == 1));
    if (constant("g2") == 1) {
        check_code(stage("combine", 0, false), 0, 0);
    }
}

// Products of `rows` rows with `columns` columns of `depth`.
std::uint64_t fewest_products(std::int64_t rows, std::int64_t columns, std::int64_t depth) {
    return static_cast<std::uint64_t>(rows * columns * depth / kProductElements);
}

void check_counts(std::string_view what, const device::ExecutionCounts& counts, std::uint64_t products) {
    CAPTURE(std::string(what));
    CHECK(counts.mfma == products);
    CHECK((counts.lds_accesses > 0) == (products > 0));
    const double accesses = std::max(1.0, static_cast<double>(counts.lds_accesses));
    MESSAGE(std::string(what) << ": " << counts.mfma << " products, " << counts.lds_accesses
                              << " accesses to LDS, for each "
                              << static_cast<double>(counts.lds_cycles) / accesses << " cycles, of these "
                              << static_cast<double>(counts.lds_conflict_cycles) / accesses
                              << " for conflicts");
    CHECK(counts.lds_conflict_cycles == 0);
}

}  // namespace

TEST_CASE(
    "mxmoe counts: every couple of the published problem is right, keeps to its registers and LDS, and "
    "multiplies no more than its tiles") {
    constexpr std::int64_t kM = 4;
    MxmoeDevice device;
    std::vector<operators::Pipeline> wanted;
    const std::vector<tables::Constants> couples = mxmoe_couples();
    for (const tables::Constants& couple : couples) {
        wanted.push_back(mxmoe_pipeline(kProblem, kM, couple));
    }
    // Three experts share the pairs, so that blocks of all sizes have rows that are not whole blocks.
    MxmoeInputs inputs(device, kProblem, kM, 21);
    const operators::FusedMoeArrays& arrays = inputs.arrays(Routing::three);
    const std::vector<LoadedPipeline> all = device.load(std::move(wanted));
    for (std::size_t i = 0; i < all.size(); ++i) {
        const LoadedPipeline& loaded = all[i];
        CAPTURE(loaded.pipeline.kernel_name);
        MESSAGE(loaded.pipeline.kernel_name);
        check_listing(loaded, couples[i]);
        const MxmoeDevice::Run run = device.run(loaded, inputs.weights(), arrays, kM);
        check_mxmoe_run(loaded, run, arrays, inputs.reference(Routing::three), kM);
        const std::int64_t block_m = mxmoe_bucket(loaded.pipeline).block_m;
        const std::int64_t rows = block_m * count_blocks(arrays, kM, block_m);
        check_counts("g1", run.counts[loaded.find("g1")].front(),
                     fewest_products(rows, 2 * kProblem.intermediate, kProblem.hidden));
        check_counts("g2", run.counts[loaded.find("g2")].front(),
                     fewest_products(rows, kProblem.hidden, kProblem.intermediate));
        for (const char* name : {"quantise", "combine"}) {
            if (const std::size_t at = loaded.find(name); at < run.counts.size()) {
                check_counts(name, run.counts[at].front(), 0);
            }
        }
    }
}

// Minutes of compiling: a test of its own runs it.
TEST_CASE("mxmoe sizes: every couple of small, odd and large dimensions keeps to its registers and LDS" *
          doctest::skip()) {
    std::vector<tables::Constants> all = mxmoe_couples();
    // Legal, though no couple: what a copy of x costs in the lowest blocks.
    all.push_back({{"block_m", 16}, {"f16in", 0}, {"g1_nt", 1}, {"g2", 2}, {"g2_nt", 1}});
    all.push_back({{"block_m", 16}, {"f16in", 0}, {"g1_nt", 0}, {"g2", 1}, {"g2_nt", 0}});
    std::vector<operators::Pipeline> wanted;
    for (const FusedMoeProblem& problem : {FusedMoeProblem{256, 256, 1, 1, false, true},
                                           {768, 1536, 65, 3, false, false},
                                           {1280, 768, 128, 4, false, true},
                                           {2048, 2048, 1024, 16, false, false},
                                           {4096, 256, 513, 11, false, true},
                                           {7168, 512, 385, 9, false, false}}) {
        for (const tables::Constants& constants : all) {
            wanted.push_back(mxmoe_pipeline(problem, 1024, constants));
        }
    }
    MxmoeDevice device;
    const std::vector<LoadedPipeline> loaded = device.load(std::move(wanted));
    for (std::size_t i = 0; i < loaded.size(); ++i) {
        check_listing(loaded[i], all[i % all.size()]);
    }
}
