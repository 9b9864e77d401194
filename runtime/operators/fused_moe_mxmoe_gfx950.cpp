#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "fused_moe/mxmoe_workspace.h"
#include "runtime/operators/constants_check.hpp"
#include "runtime/operators/fused_moe.hpp"
#include "runtime/operators/fused_moe_mxmoe.hpp"
#include "runtime/operators/moe_sort_templates.hpp"

namespace kiln::operators {

namespace {

constexpr std::int64_t kTileColumns = kiln::mxmoe::kTileColumns;
constexpr std::int64_t kMostOfExpert = (std::int64_t{1} << 31) - 1;  // H * I, reached by 32-bit offsets

constexpr ConstantName kNames[] = {{"block_m", ""}, {"f16in", ""}, {"g1_nt", ""}, {"g2", ""}, {"g2_nt", ""}};

FusedMoeProblem dimensions(const Problem& problem) {
    return std::get<FusedMoeProblem>(fused_moe().typed(problem));
}

MxmoeBucket resolved(const Bucket& bucket) {
    return {static_cast<std::uint32_t>(constant(bucket, "block_m")), constant(bucket, "f16in") != 0,
            static_cast<MxmoeSum>(constant(bucket, "g2"))};
}

MxmoeWorkspace workspace_of(const FusedMoeProblem& problem, const Bucket& bucket, std::int64_t m) {
    return mxmoe_workspace(resolved(bucket), problem.hidden, problem.intermediate, problem.experts,
                           problem.slots, m);
}

void check_constants(const Bucket& bucket, Demands& require) {
    const std::int64_t block_m = constant(bucket, "block_m");
    require(block_m == 16 || block_m == 32 || block_m == 64 || block_m == 128, "/constants/block_m",
            "16, 32, 64 or 128", block_m);
    const std::int64_t f16in = constant(bucket, "f16in");
    require(f16in == 0 || (f16in == 1 && block_m == 16), "/constants/f16in", "0, or 1 with block_m 16",
            f16in);
    for (const char* name : {"g1_nt", "g2_nt"}) {
        const std::int64_t nt = constant(bucket, name);
        require(nt == 0 || nt == 1, fmt::format("/constants/{}", name), "0 or 1", nt);
    }
    const std::int64_t g2 = constant(bucket, "g2");
    require(g2 >= 0 && g2 <= 2, "/constants/g2", "0, 1 or 2", g2);
}

// The specialisation that moe_sort itself would have for as many tokens. The result must be zero where
// products are added to it; else all of it is written.
PipelineStage sort_stage(const FusedMoeProblem& problem, const Bucket& bucket) {
    const MoeSortProblem sort{problem.experts, problem.slots, constant(bucket, "block_m"),
                              resolved(bucket).sum == MxmoeSum::atomic ? problem.hidden : 0, false};
    const std::vector<Bucket> all = derive_moe_sort_gfx950(sort);
    Bucket chosen =
        *std::ranges::find_if(all, [&](const Bucket& candidate) { return candidate.max_m >= bucket.max_m; });
    const auto* source = dynamic_cast<const KernelTemplate*>(
        moe_sort().find_template(chosen.template_id, fused_moe_mxmoe_gfx950().processor()));
    Problem asked = *complete(moe_sort(), {{"experts", sort.experts},
                                           {"slots", sort.slots},
                                           {"block_m", sort.block_m},
                                           {"hidden", sort.hidden}});
    return {source, &moe_sort(), std::move(asked), std::move(chosen), offsetof(FusedMoeBlock, sort)};
}

// Constant, thread safe.
class Mxmoe final : public Template {
  public:
    std::string_view id() const override { return "fused_moe/mxmoe"; }
    std::string_view processor() const override { return "gfx950"; }

    std::vector<tables::RowFault> check(const Problem& problem, const Bucket& bucket) const override;
    std::vector<const KernelTemplate*> parts() const override {
        return {&moe_sort_compact_gfx950(), &moe_sort_distributed_gfx950(),
                &moe_sort_general_gfx950(), &mxmoe_quantise_gfx950(),
                &mxmoe_g1_gfx950(),         &mxmoe_g2_gfx950(),
                &mxmoe_combine_gfx950()};
    }
    Space space(const Problem& problem, std::int64_t max_m) const override;
    std::string kernel_name(const Problem& problem, const Bucket& bucket) const override;
    std::vector<PipelineStage> stages(const Problem& problem, const Bucket& bucket) const override;

    WorkspaceNeed workspace(const Problem& problem, const Bucket& bucket, std::int64_t m) const override {
        const MxmoeWorkspace all = workspace_of(dimensions(problem), bucket, m);
        return {.zeroed = all.zeroed, .scratch = all.scratch};
    }
    bool is_deterministic(const Problem& /*problem*/, const Bucket& bucket) const override {
        return resolved(bucket).sum != MxmoeSum::atomic;
    }
    TypedBucket typed(const Problem& /*problem*/, const Bucket& bucket) const override {
        return resolved(bucket);
    }
};

std::vector<tables::RowFault> Mxmoe::check(const Problem& problem, const Bucket& bucket) const {
    std::vector<tables::RowFault> faults = check_constant_names(*this, bucket, kNames);
    if (!faults.empty()) {
        return faults;
    }
    const FusedMoeProblem sizes = dimensions(problem);
    if (!has_mxmoe_dimensions(sizes)) {
        return {
            {"/template",
             fmt::format("weights=mxfp4, hidden and intermediate multiples of {}, hidden at most {}, their "
                         "product at most {}",
                         kTileColumns, kMoeSortMostHidden, kMostOfExpert),
             fmt::format("weights={} hidden={} intermediate={}", sizes.fp8 ? "fp8" : "mxfp4", sizes.hidden,
                         sizes.intermediate)}};
    }
    Demands require;
    check_constants(bucket, require);
    const std::int64_t most_m = std::min(kMoeSortMostTokens, kFusedMoeMostBytesOfX / 2 / sizes.hidden);
    require(bucket.max_m <= most_m, "/max_m",
            fmt::format("at most {}: {} tokens, {} bytes of x", most_m, kMoeSortMostTokens,
                        kFusedMoeMostBytesOfX),
            bucket.max_m);
    return require.take();
}

// Couples of a first and a second product with the same block_m.
Space Mxmoe::space(const Problem& problem, std::int64_t /*max_m*/) const {
    if (!has_mxmoe_dimensions(dimensions(problem))) {
        return {};
    }
    using Values = std::vector<std::int64_t>;
    const auto product = [](std::int64_t block_m, Values g1_nt, Values g2, Values g2_nt) -> SpaceProduct {
        return {{"block_m", {block_m}},
                {"f16in", {block_m == 16 ? 1 : 0}},
                {"g1_nt", std::move(g1_nt)},
                {"g2", std::move(g2)},
                {"g2_nt", std::move(g2_nt)}};
    };
    return {product(16, {1}, {0}, {0, 1}), product(32, {1, 0}, {0}, {0, 1}),
            product(32, {1, 0}, {1}, {0}), product(64, {0}, {0}, {0, 1}),
            product(64, {0}, {1}, {0}),    product(128, {0}, {0, 1, 2}, {0})};
}

std::string Mxmoe::kernel_name(const Problem& problem, const Bucket& bucket) const {
    constexpr const char* kSums[] = {"atomic", "combined", "fused"};
    const FusedMoeProblem sizes = dimensions(problem);
    return fmt::format(
        "kiln_fused_moe_mxmoe{}_h{}_i{}_e{}_s{}_b{}{}{}_{}{}_m{}", sizes.interleaved ? "_interleaved" : "",
        sizes.hidden, sizes.intermediate, sizes.experts, sizes.slots, constant(bucket, "block_m"),
        constant(bucket, "f16in") != 0 ? "_f16in" : "", constant(bucket, "g1_nt") != 0 ? "_nt" : "",
        kSums[constant(bucket, "g2")], constant(bucket, "g2_nt") != 0 ? "_nt" : "", bucket.max_m);
}

std::vector<PipelineStage> Mxmoe::stages(const Problem& problem, const Bucket& bucket) const {
    std::vector<PipelineStage> all{sort_stage(dimensions(problem), bucket)};
    const auto add = [&](const KernelTemplate& source, tables::Constants constants, tables::Budget budget) {
        all.push_back({&source,
                       nullptr,
                       problem,
                       {bucket.max_m, std::string(source.id()), std::move(constants), budget},
                       offsetof(FusedMoeBlock, mxmoe)});
    };
    const MxmoeBucket constants = resolved(bucket);
    const std::int64_t block_m = constants.block_m;
    if (!constants.f16in) {
        add(mxmoe_quantise_gfx950(), {}, {});
    }
    add(mxmoe_g1_gfx950(),
        {{"block_m", block_m}, {"f16in", constant(bucket, "f16in")}, {"nt", constant(bucket, "g1_nt")}},
        bucket.budget);
    add(mxmoe_g2_gfx950(),
        {{"block_m", block_m}, {"sum", constant(bucket, "g2")}, {"nt", constant(bucket, "g2_nt")}},
        bucket.budget);
    if (constants.sum == MxmoeSum::combined) {
        add(mxmoe_combine_gfx950(), {}, {});
    }
    return all;
}

}  // namespace

bool has_mxmoe_dimensions(const FusedMoeProblem& problem) {
    return !problem.fp8 && problem.hidden % kTileColumns == 0 && problem.intermediate % kTileColumns == 0 &&
           problem.hidden <= kMoeSortMostHidden && problem.hidden <= kMostOfExpert / problem.intermediate;
}

const Template& fused_moe_mxmoe_gfx950() {
    static const Mxmoe source;
    return source;
}

}  // namespace kiln::operators
