#include "runtime/operators/linear_derivation_sm_90a.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <tuple>

#include "runtime/operators/linear_buckets.hpp"
#include "runtime/operators/linear_small_m.hpp"

namespace kiln::operators {

namespace {

constexpr std::int64_t kTokens = 8;
constexpr std::int64_t kMaxTilesN = 32;
constexpr std::int64_t kMaxWarps = 16;
constexpr std::int64_t kWarpsToFill = 8;
constexpr std::int64_t kPiecesInFlight = 32;  // of 2 KiB
constexpr std::int64_t kRoundPieces = 24;     // what the beginning and the end of a work-group cost
constexpr std::int64_t kMaxSteps = 512;
constexpr std::int64_t kLeastSteps = 4;
constexpr std::int64_t kMostSteps = 8;
constexpr std::int64_t kQuarterRegisters = 16 * 1024;
constexpr std::int64_t kMaxRegisters = 224;  // of a lane
// Clusters of so many work-groups that fit the H200 at once, one work-group on a multiprocessor.
struct Split {
    std::int64_t split_k, clusters;
};
constexpr std::int64_t kLastSplit = 8;  // for a K that no other has room for
constexpr Split kSplits[] = {{2, 66}, {1, 132}, {4, 30}, {kLastSplit, 14}};
constexpr std::int64_t kBucketEnds[] = {8, 16, 24, 32};

struct Choice {
    std::int64_t max_m = 0, split_k = 0, tiles_n = 0, warp_tiles = 0, warps_k = 0, steps = 0, stages = 0;

    [[nodiscard]] Bucket bucket() const {
        return {max_m,
                std::string(linear_small_m_sm_90a().id()),
                {{"split_k", split_k},
                 {"tiles_n", tiles_n},
                 {"warp_tiles", warp_tiles},
                 {"warps_k", warps_k},
                 {"steps", steps},
                 {"stages", stages},
                 {"early_steps", stages}}};
    }
    [[nodiscard]] std::int64_t warps() const { return ceil_div(tiles_n, warp_tiles) * warps_k; }
    // Tiles that the last warp has fewer than its neighbours.
    [[nodiscard]] std::int64_t idle_tiles() const {
        return ceil_div(tiles_n, warp_tiles) * warp_tiles - tiles_n;
    }
    [[nodiscard]] std::int64_t pieces_in_flight(std::int64_t own_blocks) const {
        return stages * (own_blocks / steps) * tiles_n;
    }
};

// 4. of the header.
bool fits_registers(const Choice& choice, std::int64_t own_blocks) {
    const std::int64_t groups = ceil_div(choice.max_m, kTokens);
    // A quarter of a multiprocessor holds a quarter of the warps, rounded up, and has a file of its own.
    const std::int64_t warps_in_quarter = ceil_div(choice.warps() + 1, 4);
    const std::int64_t limit = std::min(kMaxRegisters, kQuarterRegisters / (32 * warps_in_quarter) / 8 * 8);
    const std::int64_t multiplying = 70 + 16 * groups + (4 * groups + 2) * choice.warp_tiles +
                                     (groups > 1 ? 4 * groups : 20 * choice.warp_tiles);
    const std::int64_t together = std::min<std::int64_t>(8, ceil_div(groups * own_blocks, choice.warps()));
    return std::max(multiplying, 60 + 16 * together) <= limit;
}

// The most stages that shared memory holds; nothing when it holds none.
std::optional<Choice> fill_stages(const Problem& problem, Choice choice) {
    for (choice.stages = choice.steps; choice.stages >= 1; --choice.stages) {
        if (linear_small_m_sm_90a().check(problem, choice.bucket()).empty()) {
            return choice;
        }
    }
    return std::nullopt;
}

std::vector<std::int64_t> divisors(std::int64_t number, std::int64_t most) {
    std::vector<std::int64_t> result;
    for (std::int64_t candidate = 1; candidate <= std::min(number, most); ++candidate) {
        if (number % candidate == 0) {
            result.push_back(candidate);
        }
    }
    return result;
}

// 3. of the header.
std::optional<Choice> arrange_warps(const Problem& problem, Choice choice, std::int64_t own_blocks) {
    const auto rank = [own_blocks](const Choice& c) {
        return std::tuple(std::min(c.pieces_in_flight(own_blocks), kPiecesInFlight),
                          -std::max({kLeastSteps - c.steps, c.steps - kMostSteps, std::int64_t{0}}),
                          -std::abs(c.warps() - kWarpsToFill), -c.idle_tiles(), c.warp_tiles, c.steps);
    };
    std::optional<Choice> best;
    for (std::int64_t warp_tiles = 1; warp_tiles <= choice.tiles_n; ++warp_tiles) {
        for (const std::int64_t warps_k : divisors(own_blocks, kMaxWarps)) {
            choice.warp_tiles = warp_tiles;
            choice.warps_k = warps_k;
            if (choice.warps() > kMaxWarps || !fits_registers(choice, own_blocks)) {
                continue;
            }
            for (const std::int64_t steps : divisors(own_blocks, kMaxSteps)) {
                choice.steps = steps;
                const auto filled = fill_stages(problem, choice);
                if (filled && (!best || rank(*filled) > rank(*best))) {
                    best = filled;
                }
            }
        }
    }
    return best;
}

std::optional<Choice> choose(const Problem& problem, std::int64_t max_m) {
    const auto [n, k] = std::get<LinearProblem>(linear().typed(problem));
    const std::int64_t tiles = n / kTile;
    const std::int64_t blocks = k / kBlock;
    std::optional<Choice> best;
    std::int64_t best_cost = 0;
    for (const auto& [split_k, clusters] : kSplits) {
        for (std::int64_t tiles_n = 1; tiles_n <= kMaxTilesN; ++tiles_n) {
            if (blocks % split_k != 0 || tiles_n > tiles) {
                continue;
            }
            const std::int64_t own_blocks = blocks / split_k;
            const std::int64_t rounds = ceil_div(ceil_div(tiles, tiles_n), clusters);
            const std::int64_t units = ceil_div(max_m, kTokens) * own_blocks;
            const std::int64_t cost = rounds * (5 * (tiles_n * own_blocks + kRoundPieces) + 2 * units);
            if (best && (cost >= best_cost || split_k == kLastSplit)) {
                continue;
            }
            if (auto choice = arrange_warps(problem, {max_m, split_k, tiles_n, 0, 0, 0, 0}, own_blocks)) {
                best = choice;
                best_cost = cost;
            }
        }
    }
    return best;
}

// The arrangements of warps and steps for one split of the problem, each as a product of single values.
void add_arrangements(const Problem& problem, Choice choice, std::int64_t own_blocks, Space& space) {
    constexpr std::int64_t kMostWarpTiles = 5;
    for (const std::int64_t warps_k : {2, 4, 8}) {
        for (std::int64_t warp_tiles = 1; warp_tiles <= std::min(choice.tiles_n, kMostWarpTiles);
             ++warp_tiles) {
            choice.warp_tiles = warp_tiles;
            choice.warps_k = warps_k;
            if (own_blocks % warps_k != 0 || choice.warps() > kMaxWarps ||
                choice.warps() < kWarpsToFill / 2 || !fits_registers(choice, own_blocks)) {
                continue;
            }
            for (const std::int64_t steps : {4, 8, 16}) {
                choice.steps = steps;
                const auto filled = own_blocks % steps == 0 ? fill_stages(problem, choice) : std::nullopt;
                if (!filled || filled->pieces_in_flight(own_blocks) < std::min(kPiecesInFlight, own_blocks)) {
                    continue;
                }
                space.push_back({{"split_k", {filled->split_k}},
                                 {"tiles_n", {filled->tiles_n}},
                                 {"warp_tiles", {filled->warp_tiles}},
                                 {"warps_k", {filled->warps_k}},
                                 {"steps", {filled->steps}},
                                 {"stages", {filled->stages}},
                                 {"early_steps", {filled->stages}}});
            }
        }
    }
}

}  // namespace

Result<std::vector<Bucket>> derive_linear_small_m_sm_90a(const Problem& problem) {
    return linear_buckets(
        problem, linear_small_m_sm_90a(), kBucketEnds, choose,
        "a k that leaves room for weights in shared memory beside a work-group's activations");
}

Space linear_small_m_space_sm_90a(const Problem& problem, std::int64_t max_m) {
    constexpr std::int64_t kMostRounds = 2;
    const auto [n, k] = std::get<LinearProblem>(linear().typed(problem));
    const std::int64_t tiles = n / kTile;
    const std::int64_t blocks = k / kBlock;
    Space space;
    for (const auto& [split_k, clusters] : kSplits) {
        if (blocks % split_k != 0 || (split_k == kLastSplit && !space.empty())) {
            continue;
        }
        std::int64_t last = 0;
        for (std::int64_t rounds = 1; rounds <= kMostRounds; ++rounds) {
            const std::int64_t tiles_n = ceil_div(tiles, clusters * rounds);
            if (tiles_n != last && tiles_n <= kMaxTilesN) {
                add_arrangements(problem, {max_m, split_k, tiles_n, 0, 0, 0, 0}, blocks / split_k, space);
            }
            last = tiles_n;
        }
    }
    return space;
}

}  // namespace kiln::operators
