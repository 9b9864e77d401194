#include "runtime/operators/moe_sort_templates.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "moe_sort/general_workspace.h"
#include "moe_sort/launch.h"
#include "runtime/operators/constants_check.hpp"
#include "runtime/operators/gfx950.hpp"

namespace kiln::operators {

namespace {

using kiln::moe_sort::GeneralWorkspace;
using kiln::moe_sort::kMostPieceGroups;
using kiln::moe_sort::kMostRuns;
using kiln::moe_sort::kThreads;
using kiln::moe_sort::kWaves;

constexpr std::int64_t kCompactPairs = kiln::moe_sort::kCompactPairs;
constexpr std::int64_t kDistributedPairs = kiln::moe_sort::kDistributedPairs;

constexpr std::int64_t kDistributedExperts = 256;  // of a derived row: beyond, the general sort is quicker

std::uint32_t groups(std::int64_t count) {
    return static_cast<std::uint32_t>(count);
}

// What the three have in common.
class MoeSortTemplate : public KernelTemplate {
  public:
    std::string_view processor() const final { return "gfx950"; }

    std::vector<tables::RowFault> check(const Problem& problem, const Bucket& bucket) const final {
        std::vector<tables::RowFault> faults = check_constant_names(*this, bucket, {});
        const std::int64_t most = max_m(dimensions(problem));
        if (bucket.max_m > most) {
            faults.push_back({"/max_m", fmt::format("at most {}", most), fmt::format("{}", bucket.max_m)});
        }
        return faults;
    }

    std::string kernel_name(const Problem& problem, const Bucket&) const final {
        const auto [experts, slots, block_m, hidden, quantised] = dimensions(problem);
        const std::string_view part = id().substr(id().find('/') + 1);
        return fmt::format("kiln_moe_sort_{}_e{}_s{}_b{}{}{}", part, experts, slots, block_m,
                           hidden > 0 ? fmt::format("_h{}", hidden) : "", quantised ? "_mxfp8" : "");
    }

    std::vector<std::pair<std::string, std::int64_t>> constants(const Problem& problem,
                                                                const Bucket&) const final {
        const auto [experts, slots, block_m, hidden, quantised] = dimensions(problem);
        return {{"kExperts", experts},
                {"kSlots", slots},
                {"kBlockM", block_m},
                {"kHidden", hidden},
                {"kQuantised", quantised ? 1 : 0}};
    }

    // There are no constants; which of the three it is, is the choice.
    Space space(const Problem&, std::int64_t) const final { return {{}}; }

    const KernargBlock& kernargs() const final { return moe_sort_kernargs(); }

    std::vector<std::string> options() const final { return gfx950_options(); }

    std::string probe() const final {
        return "typedef short v2 __attribute__((ext_vector_type(2))); typedef __bf16 b2 "
               "__attribute__((ext_vector_type(2)));\n"
               "extern \"C\" __global__ void kiln_probe(v2* a, b2 b, float s) { "
               "*a = __builtin_amdgcn_cvt_scalef32_pk_fp8_bf16(*a, b, s, false); }\n";
    }

  protected:
    [[nodiscard]] virtual std::int64_t max_m(const MoeSortProblem& problem) const = 0;

    [[nodiscard]] static MoeSortProblem dimensions(const Problem& problem) {
        return std::get<MoeSortProblem>(moe_sort().typed(problem));
    }
    [[nodiscard]] static std::uint32_t pieces(const MoeSortProblem& problem) {
        return groups(ceil_div(problem.hidden, kiln::moe_sort::kPieceElements));
    }
    [[nodiscard]] static std::uint32_t padding_groups(const MoeSortProblem& problem) {
        return groups(ceil_div(problem.experts, kiln::moe_sort::kPaddedTogether));
    }
    [[nodiscard]] static KernelLaunch kernel(std::string symbol, const GridRule& grid_x) {
        return {std::move(symbol), {{1, 1, 1}, {kThreads, 1, 1}, 0}, grid_x};
    }
};

class Compact final : public MoeSortTemplate {
  public:
    std::string_view id() const override { return "moe_sort/compact"; }
    std::vector<KernelLaunch> kernels(const Problem& problem, const Bucket& bucket) const override {
        return {kernel(kernel_name(problem, bucket), {.fixed = 1, .per_step = pieces(dimensions(problem))})};
    }

  protected:
    std::int64_t max_m(const MoeSortProblem& problem) const override { return kCompactPairs / problem.slots; }
};

class Distributed final : public MoeSortTemplate {
  public:
    std::string_view id() const override { return "moe_sort/distributed"; }
    std::vector<KernelLaunch> kernels(const Problem& problem, const Bucket& bucket) const override {
        const MoeSortProblem sort = dimensions(problem);
        return {
            kernel(kernel_name(problem, bucket), {.fixed = padding_groups(sort), .per_step = pieces(sort)})};
    }

  protected:
    std::int64_t max_m(const MoeSortProblem& problem) const override {
        return kDistributedPairs / problem.slots;
    }
};

class General final : public MoeSortTemplate {
  public:
    std::string_view id() const override { return "moe_sort/general"; }

    std::vector<KernelLaunch> kernels(const Problem& problem, const Bucket& bucket) const override {
        const MoeSortProblem sort = dimensions(problem);
        const std::string name = kernel_name(problem, bucket);
        const std::uint32_t padding = padding_groups(sort);
        constexpr std::uint32_t kRunGroups = kMostRuns / kWaves;
        const GridRule by_pairs{
            .per_step = 1, .step = kThreads, .per_token = groups(sort.slots), .most = kRunGroups};
        GridRule place = by_pairs;
        place.fixed = padding;
        place.most += padding;
        GridRule by_pieces{.per_step = pieces(sort), .most = kMostPieceGroups};
        if (sort.quantised) {
            return {kernel(kernel_symbol(name, "count"), by_pairs),
                    kernel(kernel_symbol(name, "place"), place),
                    kernel(kernel_symbol(name, "quantise"), by_pieces)};
        }
        by_pieces.fixed = kRunGroups;
        by_pieces.most += kRunGroups;
        return {kernel(kernel_symbol(name, "count"), sort.hidden > 0 ? by_pieces : by_pairs),
                kernel(kernel_symbol(name, "place"), place)};
    }

    WorkspaceNeed workspace(const Problem& problem, const Bucket&, std::int64_t m) const override {
        const MoeSortProblem sort = dimensions(problem);
        const GeneralWorkspace scratch{static_cast<std::uint32_t>(sort.experts),
                                       static_cast<std::uint32_t>(m * sort.slots)};
        return {sizeof(std::uint32_t), static_cast<std::int64_t>(scratch.bytes(sort.quantised))};
    }

  protected:
    std::int64_t max_m(const MoeSortProblem&) const override { return kMoeSortMostTokens; }
};

}  // namespace

const KernelTemplate& moe_sort_compact_gfx950() {
    static const Compact source;
    return source;
}
const KernelTemplate& moe_sort_distributed_gfx950() {
    static const Distributed source;
    return source;
}
const KernelTemplate& moe_sort_general_gfx950() {
    static const General source;
    return source;
}

std::vector<Bucket> derive_moe_sort_gfx950(const MoeSortProblem& problem) {
    std::vector<Bucket> buckets{
        {std::min(kCompactPairs, 2 * problem.block_m) / problem.slots, "moe_sort/compact", {}}};
    if (problem.experts <= kDistributedExperts) {
        buckets.push_back({kDistributedPairs / problem.slots, "moe_sort/distributed", {}});
    }
    buckets.push_back({kMoeSortMostTokens, "moe_sort/general", {}});
    return buckets;
}

}  // namespace kiln::operators
