#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "fused_moe/mxmoe_workspace.h"
#include "runtime/operators/constants_check.hpp"
#include "runtime/operators/fused_moe.hpp"
#include "runtime/operators/fused_moe_mxmoe.hpp"
#include "runtime/operators/gfx950.hpp"

namespace kiln::operators {

namespace {

namespace kernels = kiln::mxmoe;

constexpr std::int64_t kIntermediateColumns = 128;  // of a work-group of the first product

FusedMoeProblem dimensions(const Problem& problem) {
    return std::get<FusedMoeProblem>(fused_moe().typed(problem));
}

std::uint32_t groups(std::int64_t count) {
    return static_cast<std::uint32_t>(count);
}

// What the stages have in common: one kernel each, of the same arguments. Constant, thread safe.
class MxmoeStage : public KernelTemplate {
  public:
    std::string_view processor() const final { return "gfx950"; }
    bool serves_rows() const final { return false; }

    std::vector<tables::RowFault> check(const Problem& /*problem*/, const Bucket& bucket) const final {
        return check_constant_names(*this, bucket, names());
    }
    std::vector<KernelLaunch> kernels(const Problem& problem, const Bucket& bucket) const final {
        return {{kernel_name(problem, bucket),
                 {{1, 1, 1}, {threads(bucket), 1, 1}, 0},
                 grid(dimensions(problem))}};
    }
    std::vector<std::pair<std::string, std::int64_t>> constants(const Problem& problem,
                                                                const Bucket& bucket) const final {
        auto all = of_problem(dimensions(problem));
        for (const ConstantName& name : names()) {
            all.emplace_back(name.header, constant(bucket, name.row));
        }
        return all;
    }
    const KernargBlock& kernargs() const final { return mxmoe_kernargs(); }
    std::vector<std::string> options() const final { return gfx950_options(); }
    std::string probe() const final {
        return "typedef int v8 __attribute__((ext_vector_type(8))); "
               "typedef float v4 __attribute__((ext_vector_type(4)));\n"
               "extern \"C\" __global__ void kiln_probe(v8 a, v8 b, v4* c, int s) { "
               "*c = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(a, b, *c, 4, 4, 0, s, 0, s); }\n";
    }

  protected:
    using NamedConstants = std::vector<std::pair<std::string, std::int64_t>>;

    [[nodiscard]] virtual std::span<const ConstantName> names() const { return {}; }
    [[nodiscard]] virtual NamedConstants of_problem(const FusedMoeProblem& problem) const = 0;
    [[nodiscard]] virtual GridRule grid(const FusedMoeProblem& problem) const = 0;
    [[nodiscard]] virtual std::uint32_t threads(const Bucket& /*bucket*/) const { return kernels::kThreads; }

    [[nodiscard]] static std::uint32_t threads_of_tile(const Bucket& bucket) {
        return kernels::tile_threads(static_cast<std::uint32_t>(constant(bucket, "block_m")));
    }
    // A work-group for so many elements of tokens of H.
    [[nodiscard]] static GridRule by_pieces(const FusedMoeProblem& problem) {
        constexpr std::int64_t kUnit = kernels::kTileColumns;
        return {.per_step = 1,
                .step = groups(kernels::kPieceElements / kUnit),
                .per_token = groups(problem.hidden / kUnit),
                .most = kernels::kMostPieceGroups};
    }
    // Enough for a block of its own for each pair; there are fewer where pairs share experts, and a
    // work-group takes several where there are more.
    [[nodiscard]] static GridRule by_tiles(const FusedMoeProblem& problem, std::int64_t column_tiles) {
        return {.per_step = groups(column_tiles),
                .per_token = groups(problem.slots),
                .most = kernels::kMostGroups};
    }
    [[nodiscard]] static NamedConstants sizes(const FusedMoeProblem& problem) {
        return {{"kHidden", problem.hidden},
                {"kIntermediate", problem.intermediate},
                {"kExperts", problem.experts},
                {"kSlots", problem.slots}};
    }
};

class Quantise final : public MxmoeStage {
  public:
    std::string_view id() const override { return "fused_moe/mxmoe_quantise"; }
    std::string kernel_name(const Problem& problem, const Bucket& /*bucket*/) const override {
        return fmt::format("kiln_fused_moe_mxmoe_quantise_h{}", dimensions(problem).hidden);
    }

  protected:
    NamedConstants of_problem(const FusedMoeProblem& problem) const override {
        return {{"kHidden", problem.hidden}};
    }
    GridRule grid(const FusedMoeProblem& problem) const override { return by_pieces(problem); }
};

class G1 final : public MxmoeStage {
  public:
    std::string_view id() const override { return "fused_moe/mxmoe_g1"; }
    std::string kernel_name(const Problem& problem, const Bucket& bucket) const override {
        const FusedMoeProblem all = dimensions(problem);
        return fmt::format(
            "kiln_fused_moe_mxmoe_g1{}_h{}_i{}_e{}_s{}_b{}{}{}", all.interleaved ? "_interleaved" : "",
            all.hidden, all.intermediate, all.experts, all.slots, constant(bucket, "block_m"),
            constant(bucket, "f16in") != 0 ? "_f16in" : "", constant(bucket, "nt") != 0 ? "_nt" : "");
    }

  protected:
    std::span<const ConstantName> names() const override {
        static constexpr ConstantName all[] = {
            {"block_m", "kBlockM"}, {"f16in", "kF16In"}, {"nt", "kNonTemporal"}};
        return all;
    }
    NamedConstants of_problem(const FusedMoeProblem& problem) const override {
        NamedConstants all = sizes(problem);
        all.emplace_back("kInterleaved", problem.interleaved ? 1 : 0);
        return all;
    }
    GridRule grid(const FusedMoeProblem& problem) const override {
        return by_tiles(problem, problem.intermediate / kIntermediateColumns);
    }
    std::uint32_t threads(const Bucket& bucket) const override { return threads_of_tile(bucket); }
};

class G2 final : public MxmoeStage {
  public:
    std::string_view id() const override { return "fused_moe/mxmoe_g2"; }
    std::string kernel_name(const Problem& problem, const Bucket& bucket) const override {
        constexpr const char* kSums[] = {"atomic", "each", "fused"};
        const FusedMoeProblem all = dimensions(problem);
        return fmt::format("kiln_fused_moe_mxmoe_g2_h{}_i{}_e{}_s{}_b{}_{}{}", all.hidden, all.intermediate,
                           all.experts, all.slots, constant(bucket, "block_m"),
                           kSums[constant(bucket, "sum")], constant(bucket, "nt") != 0 ? "_nt" : "");
    }

  protected:
    std::span<const ConstantName> names() const override {
        static constexpr ConstantName all[] = {
            {"block_m", "kBlockM"}, {"sum", "kMode"}, {"nt", "kNonTemporal"}};
        return all;
    }
    NamedConstants of_problem(const FusedMoeProblem& problem) const override { return sizes(problem); }
    GridRule grid(const FusedMoeProblem& problem) const override {
        return by_tiles(problem, problem.hidden / kernels::kTileColumns);
    }
    std::uint32_t threads(const Bucket& bucket) const override { return threads_of_tile(bucket); }
};

class Combine final : public MxmoeStage {
  public:
    std::string_view id() const override { return "fused_moe/mxmoe_combine"; }
    std::string kernel_name(const Problem& problem, const Bucket& /*bucket*/) const override {
        const FusedMoeProblem all = dimensions(problem);
        return fmt::format("kiln_fused_moe_mxmoe_combine_h{}_e{}_s{}", all.hidden, all.experts, all.slots);
    }

  protected:
    NamedConstants of_problem(const FusedMoeProblem& problem) const override {
        return {{"kHidden", problem.hidden}, {"kExperts", problem.experts}, {"kSlots", problem.slots}};
    }
    GridRule grid(const FusedMoeProblem& problem) const override { return by_pieces(problem); }
};

}  // namespace

std::int64_t fused_moe_mxmoe_lds(const Bucket& bucket) {
    // The second product's; the first's, 256 a row and at most 4096 more, are fewer.
    return 520 * constant(bucket, "block_m") + (constant(bucket, "g2") == 2 ? 16 : 0);
}

const KernelTemplate& mxmoe_quantise_gfx950() {
    static const Quantise source;
    return source;
}
const KernelTemplate& mxmoe_g1_gfx950() {
    static const G1 source;
    return source;
}
const KernelTemplate& mxmoe_g2_gfx950() {
    static const G2 source;
    return source;
}
const KernelTemplate& mxmoe_combine_gfx950() {
    static const Combine source;
    return source;
}

}  // namespace kiln::operators
