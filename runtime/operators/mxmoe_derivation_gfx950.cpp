#include "runtime/operators/mxmoe_derivation_gfx950.hpp"

#include <string>

#include "runtime/operators/fused_moe.hpp"
#include "runtime/operators/fused_moe_mxmoe.hpp"

namespace kiln::operators {

namespace {

std::int64_t waves_per_simd(const Bucket& bucket) {
    const std::int64_t block_m = bucket.constants.find("block_m")->second;
    return block_m <= 32 ? 3 : 2;
}

tables::Constants constants(std::int64_t block_m, bool streams, MxmoeSum sum) {
    const std::int64_t nt = streams ? 1 : 0;
    return {{"block_m", block_m},
            {"f16in", block_m == 16 ? 1 : 0},
            {"g1_nt", nt},
            {"g2", static_cast<std::int64_t>(sum)},
            {"g2_nt", nt}};
}

tables::Constants choice(const FusedMoeProblem& problem, std::int64_t m) {
    // Twice the pairs, against halves.
    const std::int64_t pairs = 2 * m * problem.slots;
    if (pairs <= 11 * problem.experts) {
        return constants(16, true, MxmoeSum::atomic);
    }
    if (pairs <= 24 * problem.experts) {
        return constants(32, true, MxmoeSum::atomic);
    }
    return pairs <= 96 * problem.experts ? constants(32, false, MxmoeSum::atomic)
                                         : constants(128, false, MxmoeSum::combined);
}

}  // namespace

std::vector<Bucket> derive_fused_moe_mxmoe_gfx950(const Problem& problem, std::int64_t above) {
    const auto sizes = std::get<FusedMoeProblem>(fused_moe().typed(problem));
    if (!has_mxmoe_dimensions(sizes)) {
        return {};
    }
    const Template& source = fused_moe_mxmoe_gfx950();
    std::vector<Bucket> runs;
    for (std::int64_t m = 1; m <= kMxmoeDerivedEnd; m *= 2) {
        tables::Constants chosen = choice(sizes, m);
        if (m <= above) {
            continue;
        }
        if (!runs.empty() && runs.back().constants == chosen) {
            runs.back().max_m = m;
        } else {
            runs.push_back({m, std::string(source.id()), std::move(chosen)});
        }
    }
    std::vector<Bucket> buckets;
    for (Bucket& run : runs) {
        run.budget = {waves_per_simd(run), fused_moe_mxmoe_lds(run)};
        buckets.push_back(run);
        if (!source.is_deterministic(problem, run)) {
            run.constants.insert_or_assign("g2", static_cast<std::int64_t>(MxmoeSum::combined));
            buckets.push_back(std::move(run));
        }
    }
    std::erase_if(buckets, [&](const Bucket& bucket) { return !source.check(problem, bucket).empty(); });
    return buckets;
}

}  // namespace kiln::operators
