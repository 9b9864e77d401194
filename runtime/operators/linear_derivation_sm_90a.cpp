#include "runtime/operators/linear_derivation_sm_90a.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "runtime/operators/linear_small_m.hpp"

namespace kiln::operators {

namespace {

constexpr std::int64_t kTile = 16;
constexpr std::int64_t kBlock = 128;
constexpr std::int64_t kTokens = 8;
constexpr std::int64_t kMultiprocessors = 132;
constexpr std::int64_t kMaxTilesN = 32;
constexpr std::int64_t kMaxWarps = 16;
constexpr std::int64_t kWarpsToFill = 8;
constexpr std::int64_t kPiecesInFlight = 32;  // of 2 KiB
constexpr std::int64_t kRoundPieces = 24;     // what the beginning and the end of a work-group cost
constexpr std::int64_t kSteps = 4;
constexpr std::int64_t kMaxStages = 64;
constexpr std::int64_t kRegisters = 96;
constexpr std::int64_t kSplits[] = {4, 2, 1, 8};  // the best first
constexpr std::int64_t kBucketEnds[] = {8, 16, 24, 32};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
    return (a + b - 1) / b;
}

struct Choice {
    std::int64_t max_m = 0, split_k = 0, tiles_n = 0, warp_tiles = 0, warps_k = 0, stages = 0;

    [[nodiscard]] Bucket bucket() const {
        return {max_m,
                std::string(linear_small_m_sm_90a().id()),
                {{"split_k", split_k},
                 {"tiles_n", tiles_n},
                 {"warp_tiles", warp_tiles},
                 {"warps_k", warps_k},
                 {"stages", stages}}};
    }
    [[nodiscard]] std::int64_t warps() const { return tiles_n / warp_tiles * warps_k; }
    [[nodiscard]] std::int64_t pieces_in_flight() const { return stages * tiles_n * warps_k; }
};

// The most stages that fit; nothing when none does.
std::optional<Choice> fill_stages(const Problem& problem, Choice choice, std::int64_t steps) {
    for (choice.stages = std::min(steps, kMaxStages); choice.stages >= 1; --choice.stages) {
        if (linear_small_m_sm_90a().check(problem, choice.bucket()).empty()) {
            return choice;
        }
    }
    return std::nullopt;
}

// 3. and 4. of the header.
std::optional<Choice> arrange_warps(const Problem& problem, Choice choice, std::int64_t own_blocks) {
    const std::int64_t groups = ceil_div(choice.max_m, kTokens);
    const auto rank = [own_blocks](const Choice& c) {
        return std::tuple(std::min(c.pieces_in_flight(), kPiecesInFlight),
                          std::min(own_blocks / c.warps_k, kSteps), -std::abs(c.warps() - kWarpsToFill),
                          c.warp_tiles);
    };
    std::optional<Choice> best;
    for (choice.warp_tiles = 1; choice.warp_tiles <= choice.tiles_n; ++choice.warp_tiles) {
        if (choice.tiles_n % choice.warp_tiles != 0 ||
            (choice.warp_tiles > 1 && 4 * choice.warp_tiles * groups + 16 * groups > kRegisters)) {
            continue;
        }
        for (choice.warps_k = 1; choice.warps_k <= std::min(own_blocks, kMaxWarps); ++choice.warps_k) {
            if (own_blocks % choice.warps_k != 0 || choice.warps() > kMaxWarps) {
                continue;
            }
            const auto filled = fill_stages(problem, choice, own_blocks / choice.warps_k);
            if (filled && (!best || rank(*filled) > rank(*best))) {
                best = filled;
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
    for (const std::int64_t split_k : kSplits) {
        for (std::int64_t tiles_n = 1; tiles_n <= kMaxTilesN; ++tiles_n) {
            if (blocks % split_k != 0 || tiles % tiles_n != 0) {
                continue;
            }
            const std::int64_t own_blocks = blocks / split_k;
            const std::int64_t rounds = ceil_div(tiles / tiles_n * split_k, kMultiprocessors);
            const std::int64_t cost = rounds * (tiles_n * own_blocks + kRoundPieces);
            if (best && cost >= best_cost) {
                continue;
            }
            if (auto choice = arrange_warps(problem, {max_m, split_k, tiles_n, 0, 0, 0}, own_blocks)) {
                best = choice;
                best_cost = cost;
            }
        }
    }
    return best;
}

}  // namespace

Result<std::vector<Bucket>> derive_linear_small_m_sm_90a(const Problem& problem) {
    std::vector<Bucket> buckets;
    for (const std::int64_t max_m : kBucketEnds) {
        const std::optional<Choice> choice = choose(problem, max_m);
        if (!choice) {
            break;
        }
        buckets.push_back(choice->bucket());
    }
    if (buckets.empty()) {
        return fail(
            ErrorCode::bad_input, Stage::table,
            fmt::format("{} {}: expected weights below 4 GiB, and a k that leaves room for weights in "
                        "shared memory beside a work-group's activations, found a problem that no "
                        "constants of {} serve on sm_90a",
                        linear().name(), format_problem(linear(), problem), linear_small_m_sm_90a().id()));
    }
    return buckets;
}

}  // namespace kiln::operators
