#include "runtime/operators/fused_moe_small_m.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/operators/constants_check.hpp"
#include "runtime/operators/fused_moe.hpp"
#include "runtime/operators/gfx950.hpp"

namespace kiln::operators {

namespace {

constexpr std::int64_t kLdsBetweenArrays = 48;  // at most, where they are aligned
constexpr std::int64_t kTileRows = 16;
constexpr std::int64_t kBlock = 128;
constexpr std::int64_t kWave = 64;
constexpr std::int64_t kComputeUnits = 256;
constexpr std::int64_t kMostOfAllExperts = std::int64_t{1} << 31;
constexpr std::int64_t kMostOfExpert = (std::int64_t{1} << 32) - (std::int64_t{1} << 16);
constexpr std::int64_t kMostOfIntermediate = (std::int64_t{1} << 31) - 1;

constexpr ConstantName kNames[] = {
    {"columns", "kColumns"},
    {"gate_up_waves", "kGateUpWaves"},
    {"row_tiles", "kRowTiles"},
    {"down_waves", "kDownWaves"},
};

FusedMoeProblem dimensions(const Problem& problem) {
    return std::get<FusedMoeProblem>(fused_moe().typed(problem));
}

// LDS of a work-group, as the template's README counts it. More than one token: the tokens of each expert are
// kept too, a bit each, for whole waves of experts.
std::int64_t token_bits(const FusedMoeProblem& problem, std::int64_t max_m) {
    return (max_m <= 32 ? 4 : 8) * ceil_div(problem.experts, kWave) * kWave;
}
std::int64_t gate_up_lds(const FusedMoeProblem& problem, std::int64_t max_m, std::int64_t waves,
                         std::int64_t columns) {
    const std::int64_t sums = 1024 * waves * ceil_div(max_m, kTileRows) * (columns > 8 ? 2 : 1);
    return max_m == 1 ? sums : sums + token_bits(problem, max_m) + 16;
}
std::int64_t down_lds(const FusedMoeProblem& problem, std::int64_t max_m, std::int64_t row_tiles) {
    const std::int64_t pairs = max_m * problem.slots;
    const std::int64_t row = row_tiles == 1 ? kTileRows : kTileRows * row_tiles + 4;
    const std::int64_t products = 4 * row * (pairs + 1) + 8 * pairs + kLdsBetweenArrays;
    return max_m == 1 ? products
                      : products + token_bits(problem, max_m) + 4 * problem.experts +
                            12 * std::min(pairs, problem.experts) + 4;
}

void check_constants(const FusedMoeProblem& problem, const Bucket& bucket, Demands& require) {
    const std::int64_t columns = constant(bucket, "columns");
    const std::int64_t gate_up_waves = constant(bucket, "gate_up_waves");
    const std::int64_t row_tiles = constant(bucket, "row_tiles");
    const std::int64_t down_waves = constant(bucket, "down_waves");
    // One token of mxfp4 may have work-groups that take columns of two experts, by offsets over all of them.
    const bool any_columns = bucket.max_m == 1 && !problem.fp8;
    const bool whole = columns == 8 || columns == 16;
    if (require(whole || (any_columns && columns >= 1 && columns <= 16), "/constants/columns",
                any_columns ? "1 to 16" : "8 or 16", columns) &&
        !whole) {
        const std::int64_t bytes = problem.experts * problem.intermediate * problem.hidden;
        require(bytes < kMostOfAllExperts, "/constants/columns",
                fmt::format("8 or 16: the weights of all experts are {} bytes, {} and more", bytes,
                            kMostOfAllExperts),
                columns);
    }
    const std::int64_t blocks = problem.hidden / kBlock;
    if (require(gate_up_waves >= 1 && gate_up_waves <= 16 && blocks % gate_up_waves == 0,
                "/constants/gate_up_waves", fmt::format("1 to 16, a divisor of hidden / 128 = {}", blocks),
                gate_up_waves)) {
        const std::int64_t lds = gate_up_lds(problem, bucket.max_m, gate_up_waves, columns);
        require(lds <= kGfx950LdsBytes, "/constants/gate_up_waves",
                fmt::format("at most {} bytes of LDS in gate_up", kGfx950LdsBytes), lds);
    }
    const std::int64_t tiles = problem.hidden / kTileRows;
    if (require(row_tiles >= 1 && row_tiles <= 8 && tiles % row_tiles == 0, "/constants/row_tiles",
                fmt::format("1 to 8, a divisor of hidden / 16 = {}", tiles), row_tiles)) {
        const std::int64_t lds = down_lds(problem, bucket.max_m, row_tiles);
        require(lds <= kGfx950LdsBytes, "/constants/row_tiles",
                fmt::format("at most {} bytes of LDS in down", kGfx950LdsBytes), lds);
    }
    require(down_waves >= 1 && down_waves <= 16, "/constants/down_waves", "1 to 16", down_waves);
}

// Constant, thread safe.
class SmallM final : public KernelTemplate {
  public:
    std::string_view id() const override { return "fused_moe/small_m"; }
    std::string_view processor() const override { return "gfx950"; }

    std::vector<tables::RowFault> check(const Problem& problem, const Bucket& bucket) const override {
        std::vector<tables::RowFault> faults = check_constant_names(*this, bucket, kNames);
        if (!faults.empty()) {
            return faults;
        }
        // These keep what follows within 64 bits, so nothing more is said of a row that breaks one.
        const FusedMoeProblem dimensions = operators::dimensions(problem);
        Demands require;
        const std::int64_t most_hidden =
            kMostOfExpert / dimensions.intermediate / (dimensions.fp8 ? 2 : 1) - 1;
        if (!require(dimensions.hidden <= most_hidden, "/constants",
                     fmt::format("hidden at most {} where intermediate = {}: an expert's weights are reached "
                                 "by 32-bit offsets",
                                 most_hidden, dimensions.intermediate),
                     dimensions.hidden)) {
            return require.take();
        }
        const std::int64_t most_m =
            std::min({kFusedMoeMostTokens, kFusedMoeMostPairs / dimensions.slots,
                      kMostOfIntermediate / fused_moe_h_bytes(dimensions.intermediate, dimensions.slots, 1)});
        if (require(bucket.max_m <= most_m, "/max_m",
                    fmt::format("at most {}: {} tokens, {} pairs of token and slot, below {} bytes of h",
                                most_m, kFusedMoeMostTokens, kFusedMoeMostPairs, kMostOfIntermediate),
                    bucket.max_m)) {
            check_constants(dimensions, bucket, require);
        }
        return require.take();
    }

    Space space(const Problem& problem, std::int64_t max_m) const override;

    std::string kernel_name(const Problem& problem, const Bucket& bucket) const override {
        const auto [hidden, intermediate, experts, slots, fp8, interleaved] = dimensions(problem);
        return fmt::format("kiln_fused_moe_{}{}_h{}_i{}_e{}_s{}_m{}", fp8 ? "fp8" : "mxfp4",
                           interleaved ? "_interleaved" : "", hidden, intermediate, experts, slots,
                           bucket.max_m);
    }

    std::vector<KernelLaunch> kernels(const Problem& problem, const Bucket& bucket) const override {
        const FusedMoeProblem dimensions = operators::dimensions(problem);
        const std::string name = kernel_name(problem, bucket);
        const auto block = [&](std::string_view waves) {
            return device::LaunchShape{
                {1, 1, 1}, {static_cast<std::uint32_t>(kWave * constant(bucket, waves)), 1, 1}, 0};
        };
        const std::int64_t columns = constant(bucket, "columns");
        GridRule gate_up;
        if (bucket.max_m == 1) {
            gate_up.fixed =
                static_cast<std::uint32_t>(ceil_div(dimensions.slots * dimensions.intermediate, columns));
        } else {
            // The columns of an expert for each pair, or for each expert where those are fewer.
            gate_up.per_step = static_cast<std::uint32_t>(dimensions.intermediate / columns);
            gate_up.per_token = static_cast<std::uint32_t>(dimensions.slots);
            gate_up.most = gate_up.per_step * static_cast<std::uint32_t>(dimensions.experts);
        }
        const GridRule down{.fixed = static_cast<std::uint32_t>(dimensions.hidden / kTileRows /
                                                                constant(bucket, "row_tiles"))};
        return {{kernel_symbol(name, "gate_up"), block("gate_up_waves"), gate_up},
                {kernel_symbol(name, "down"), block("down_waves"), down}};
    }

    WorkspaceNeed workspace(const Problem& problem, const Bucket& /*bucket*/, std::int64_t m) const override {
        const FusedMoeProblem dimensions = operators::dimensions(problem);
        return {
            .zeroed = 0,
            .scratch = fused_moe_h_bytes(dimensions.intermediate, dimensions.slots, m) + kFusedMoeFlagBytes};
    }

    std::vector<std::pair<std::string, std::int64_t>> constants(const Problem& problem,
                                                                const Bucket& bucket) const override {
        const auto [hidden, intermediate, experts, slots, fp8, interleaved] = dimensions(problem);
        std::vector<std::pair<std::string, std::int64_t>> all{
            {"kHidden", hidden},    {"kIntermediate", intermediate}, {"kExperts", experts},
            {"kSlots", slots},      {"kFp8", fp8 ? 1 : 0},           {"kInterleaved", interleaved ? 1 : 0},
            {"kMaxM", bucket.max_m}};
        for (const ConstantName& name : kNames) {
            all.emplace_back(name.header, constant(bucket, name.row));
        }
        return all;
    }

    const KernargBlock& kernargs() const override { return fused_moe_kernargs(); }

    std::vector<std::string> options() const override { return gfx950_options(); }

    std::string probe() const override {
        return "typedef __bf16 v2 __attribute__((ext_vector_type(2)));\n"
               "extern \"C\" __global__ void kiln_probe(unsigned a, float s, v2* c) { "
               "*c = __builtin_amdgcn_cvt_scalef32_pk_bf16_fp4(a, s, 0); }\n";
    }
};

Space SmallM::space(const Problem& problem, std::int64_t max_m) const {
    ConstantValues columns{"columns", {8, 16}};
    if (max_m == 1) {
        // Work-groups that take columns of two experts, just as many as there are compute units.
        const FusedMoeProblem sizes = dimensions(problem);
        const std::int64_t share = ceil_div(sizes.slots * sizes.intermediate, kComputeUnits);
        if (!sizes.fp8 && share < kTileRows && share != 8) {
            columns.values.push_back(share);
        }
    }
    const std::vector<std::int64_t> row_tiles =
        max_m == 1 ? std::vector<std::int64_t>{2, 4} : std::vector<std::int64_t>{1, 2};
    return {{std::move(columns),
             {"gate_up_waves", {2, 4, 8}},
             {"row_tiles", row_tiles},
             {"down_waves", {4, 8, 16}}}};
}

}  // namespace

std::int64_t fused_moe_small_m_lds(const Problem& problem, const Bucket& bucket) {
    const FusedMoeProblem sizes = dimensions(problem);
    return std::max(
        gate_up_lds(sizes, bucket.max_m, constant(bucket, "gate_up_waves"), constant(bucket, "columns")),
        down_lds(sizes, bucket.max_m, constant(bucket, "row_tiles")));
}

const KernelTemplate& fused_moe_small_m_gfx950() {
    static const SmallM source;
    return source;
}

}  // namespace kiln::operators
