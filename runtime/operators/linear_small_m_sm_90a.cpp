#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "runtime/operators/linear_derivation_sm_90a.hpp"
#include "runtime/operators/linear_small_m.hpp"

namespace kiln::operators {

namespace {

constexpr std::int64_t kTokens = 8;  // columns of the matrix instruction
constexpr std::int64_t kMaxSharedBytes = 227 * 1024;
constexpr std::int64_t kMaxWorkers = 16;
constexpr std::int64_t kWarpLanes = 32;

// A row's constants with what follows from them.
struct Layout {
    std::int64_t split_k, tiles_n, warp_tiles, warps_k, steps, stages, early_steps;
    std::int64_t blocks;        // of K, in all
    std::int64_t token_groups;  // of the bucket

    [[nodiscard]] std::int64_t own_blocks() const { return blocks / split_k; }
    [[nodiscard]] std::int64_t stage_blocks() const { return own_blocks() / steps; }
    // Warps that compute; one more copies.
    [[nodiscard]] std::int64_t workers() const { return ceil_div(tiles_n, warp_tiles) * warps_k; }
    // What the template lays out in shared memory.
    [[nodiscard]] std::int64_t shared_bytes() const {
        constexpr std::int64_t kTileBytes = 16 * 128;
        constexpr std::int64_t kTokenGroupBytes = kTokens * 128;
        constexpr std::int64_t kHalfBytes = 8 * kTokens * 4;
        const std::int64_t halves = 2 * tiles_n;
        // The sums of the warps take the place of the weights once these are used.
        const std::int64_t weights_or_sums = std::max(stages * tiles_n * stage_blocks() * kTileBytes,
                                                      warps_k * halves * token_groups * kHalfBytes);
        const std::int64_t tokens = token_groups * own_blocks() * kTokenGroupBytes;
        const std::int64_t inbox =
            split_k == 1 ? 0 : split_k * ceil_div(halves, split_k) * token_groups * kHalfBytes;
        const std::int64_t scales = (token_groups * kTokens + tiles_n) * own_blocks() * 4;
        const std::int64_t barriers = (2 * stages + 1) * 8;
        return ceil_div(weights_or_sums + tokens + inbox + scales, 8) * 8 + barriers;
    }
};

class SmallM final : public LinearSmallM {
  public:
    std::string_view processor() const override { return "sm_90a"; }

    std::vector<std::string> options() const override { return {"-std=c++20"}; }
    Space space(const Problem& problem, std::int64_t max_m) const override {
        return linear_small_m_space_sm_90a(problem, max_m);
    }

    std::string probe() const override {
        return "extern \"C\" __global__ __cluster_dims__(2, 1, 1) void kiln_probe(float* p) { "
               "asm volatile(\"barrier.cluster.arrive.aligned;\\n\\tbarrier.cluster.wait.aligned;\"); "
               "*p = 0; }\n";
    }

  protected:
    device::LaunchShape launch_shape(const Problem& problem, const Bucket& bucket) const override {
        const LinearProblem size = dimensions(problem);
        const Layout layout = layout_of(size, bucket);
        return {{static_cast<std::uint32_t>(ceil_div(size.n / kTile, layout.tiles_n) * layout.split_k), 1, 1},
                {static_cast<std::uint32_t>(kWarpLanes * (layout.workers() + 1)), 1, 1},
                static_cast<std::uint32_t>(layout.shared_bytes())};
    }

    std::span<const ConstantName> constant_names() const override {
        static constexpr ConstantName kNames[] = {
            {"split_k", "kSplitK"},         {"tiles_n", "kTilesN"}, {"warp_tiles", "kWarpTiles"},
            {"warps_k", "kWarpsK"},         {"steps", "kSteps"},    {"stages", "kStages"},
            {"early_steps", "kEarlySteps"},
        };
        return kNames;
    }
    std::int64_t max_rows() const override { return 64; }

    void check_constants(const LinearProblem& problem, const Bucket& bucket, Demands& require) const override;

  private:
    [[nodiscard]] static Layout layout_of(const LinearProblem& problem, const Bucket& bucket) {
        return {
            constant(bucket, "split_k"),     constant(bucket, "tiles_n"), constant(bucket, "warp_tiles"),
            constant(bucket, "warps_k"),     constant(bucket, "steps"),   constant(bucket, "stages"),
            constant(bucket, "early_steps"), problem.k / kBlock,          ceil_div(bucket.max_m, kTokens)};
    }
};

void SmallM::check_constants(const LinearProblem& problem, const Bucket& bucket, Demands& require) const {
    const Layout layout = layout_of(problem, bucket);
    const bool split_fits =
        require((layout.split_k == 1 || layout.split_k == 2 || layout.split_k == 4 || layout.split_k == 8) &&
                    layout.blocks % layout.split_k == 0,
                "/constants/split_k", fmt::format("1, 2, 4 or 8, a divisor of k / 128 = {}", layout.blocks),
                layout.split_k);
    const bool tiles_fit = require(layout.tiles_n >= 1 && layout.tiles_n <= kWarpLanes, "/constants/tiles_n",
                                   fmt::format("1 to {}", kWarpLanes), layout.tiles_n);
    if (!split_fits || !tiles_fit) {
        return;
    }
    const bool warp_tiles_fit =
        require(layout.warp_tiles >= 1 && layout.warp_tiles <= layout.tiles_n, "/constants/warp_tiles",
                fmt::format("1 to tiles_n = {}", layout.tiles_n), layout.warp_tiles);
    const bool warps_fit = require(
        layout.warps_k >= 1 && layout.own_blocks() % layout.warps_k == 0, "/constants/warps_k",
        fmt::format("1 or more, a divisor of k / 128 / split_k = {}", layout.own_blocks()), layout.warps_k);
    const bool steps_fit = require(
        layout.steps >= 1 && layout.own_blocks() % layout.steps == 0, "/constants/steps",
        fmt::format("1 or more, a divisor of k / 128 / split_k = {}", layout.own_blocks()), layout.steps);
    if (!warp_tiles_fit || !warps_fit || !steps_fit) {
        return;
    }
    require(layout.workers() <= kMaxWorkers, "/constants/warps_k",
            fmt::format("at most {} warps: ceil(tiles_n / warp_tiles) * warps_k", kMaxWorkers),
            layout.workers());
    if (!require(layout.stages >= 1 && layout.stages <= layout.steps, "/constants/stages",
                 fmt::format("1 to steps = {}", layout.steps), layout.stages)) {
        return;
    }
    require(
        layout.stages == layout.steps || layout.stage_blocks() % layout.warps_k == 0, "/constants/stages",
        fmt::format("steps = {}, or warps_k a divisor of the {} blocks of a step: every warp works on every "
                    "step where stages are used again",
                    layout.steps, layout.stage_blocks()),
        layout.stages);
    require(layout.early_steps >= 1 && layout.early_steps <= layout.stages, "/constants/early_steps",
            fmt::format("1 to stages = {}", layout.stages), layout.early_steps);
    require(layout.shared_bytes() <= kMaxSharedBytes, "/constants/stages",
            fmt::format("at most {} bytes of shared memory", kMaxSharedBytes), layout.shared_bytes());
}

}  // namespace

const KernelTemplate& linear_small_m_sm_90a() {
    static const SmallM source;
    return source;
}

}  // namespace kiln::operators
