#include "runtime/operators/linear_derivation_gfx950.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "runtime/operators/linear_buckets.hpp"
#include "runtime/operators/linear_small_m.hpp"

namespace kiln::operators {

namespace {

constexpr std::int64_t kMaxTilesN = 8;
constexpr std::int64_t kMaxWaves = 16;
constexpr std::int64_t kComputeUnits = 256;
constexpr std::int64_t kFewestWorkGroups = kComputeUnits / 2;
constexpr std::int64_t kWavesToFill = 8;  // two for each SIMD of a compute unit
constexpr std::int64_t kScaleColumns = 128;
constexpr std::int64_t kLdsKib = 160;
constexpr std::int64_t kMostScales = 32;
constexpr std::int64_t kMostUnits = 46;
constexpr std::int64_t kBucketEnds[] = {4, 8, 16, 32};

// What the template asks of the compiler.
constexpr std::int64_t kWavesPerSimd = 4;

struct Choice {
    std::int64_t max_m = 0, tiles_n = 0, waves = 0, lane_rows = 0, blocks_ahead = 0;

    [[nodiscard]] Bucket bucket() const {
        const std::int64_t lds = waves == 1 ? 0 : 1024 * waves * tiles_n * ceil_div(max_m, kTile);
        return {max_m,
                std::string(linear_small_m_gfx950().id()),
                {{"tiles_n", tiles_n},
                 {"waves", waves},
                 {"lane_rows", lane_rows},
                 {"blocks_ahead", blocks_ahead}},
                {.waves_per_simd = kWavesPerSimd, .lds_bytes = lds}};
    }
};

std::int64_t register_limit(std::int64_t rounds, std::int64_t waves) {
    if (rounds == 1) {
        return 112;
    }
    if (rounds == 2) {
        return waves % 8 == 0 ? 96 : 92;
    }
    return 84;
}

// 4. of the header, and what the template demands.
bool fits(const Problem& problem, const Choice& choice, std::int64_t blocks) {
    const auto [max_m, tiles_n, waves, lane_rows, blocks_ahead] = choice;
    const std::int64_t tiles_m = ceil_div(max_m, kTile);
    const std::int64_t wave_blocks = blocks / waves;
    const std::int64_t registers = blocks_ahead * (8 * tiles_n + tiles_m * lane_rows) + 4 * tiles_n * tiles_m;
    const std::int64_t scale_rows = kScaleColumns % (kTile * tiles_n) == 0 ? 1 : tiles_n;
    const std::int64_t lds_kib = waves == 1 ? 0 : waves * tiles_n * tiles_m;
    return registers <= register_limit(wave_blocks / blocks_ahead, waves) &&
           wave_blocks * scale_rows <= kMostScales && wave_blocks * tiles_m <= kMostUnits &&
           (lds_kib == 0 || kLdsKib / lds_kib * waves >= kMaxWaves) &&
           linear_small_m_gfx950().check(problem, choice.bucket()).empty();
}

// The best waves and blocks_ahead for the rest of the choice; nothing when none fits.
std::optional<Choice> split_k(const Problem& problem, Choice choice, std::int64_t blocks) {
    std::optional<Choice> best;
    const auto rank = [](const Choice& c) {
        return std::tuple(c.waves * c.blocks_ahead, std::min(c.waves, kWavesToFill), -c.waves);
    };
    for (choice.waves = 1; choice.waves <= kMaxWaves; ++choice.waves) {
        if (blocks % choice.waves != 0) {
            continue;
        }
        const std::int64_t per_wave = blocks / choice.waves;
        // More than this many never fit the registers: each takes at least 12.
        for (choice.blocks_ahead = 1; choice.blocks_ahead <= std::min<std::int64_t>(per_wave, 10);
             ++choice.blocks_ahead) {
            if (per_wave % choice.blocks_ahead == 0 && (!best || rank(choice) > rank(*best)) &&
                fits(problem, choice, blocks)) {
                best = choice;
            }
        }
    }
    return best;
}

std::optional<Choice> choose(const Problem& problem, std::int64_t max_m) {
    const auto [n, k] = std::get<LinearProblem>(linear().typed(problem));
    const std::int64_t tiles = n / kTile;
    std::optional<Choice> best;
    std::int64_t best_share = 0;
    for (std::int64_t tiles_n = 1; tiles_n <= kMaxTilesN; ++tiles_n) {
        const std::int64_t work_groups = tiles / tiles_n;
        if (tiles % tiles_n != 0 || work_groups < std::min(tiles, kFewestWorkGroups)) {
            continue;
        }
        const std::int64_t share = ceil_div(work_groups, kComputeUnits);
        if (best && share >= best_share) {
            continue;
        }
        const std::int64_t lane_rows = std::min(max_m, kTile);
        if (auto choice = split_k(problem, {max_m, tiles_n, 0, lane_rows, 0}, k / kBlock)) {
            best = choice;
            best_share = share;
        }
    }
    return best;
}

}  // namespace

Result<std::vector<Bucket>> derive_linear_small_m_gfx950(const Problem& problem) {
    return linear_buckets(problem, linear_small_m_gfx950(), kBucketEnds, choose,
                          fmt::format("a k / 128 that 1 to {} waves divide into at most {} blocks each",
                                      kMaxWaves, kMostScales));
}

Space linear_small_m_space_gfx950(const Problem& problem, std::int64_t max_m) {
    const auto [n, k] = std::get<LinearProblem>(linear().typed(problem));
    const std::int64_t tiles = n / kTile;
    const std::int64_t blocks = k / kBlock;
    const std::int64_t lane_rows = max_m <= 4 ? 4 : max_m <= 8 ? 8 : kTile;
    Space space;
    for (std::int64_t tiles_n = 1; tiles_n <= std::min(kMaxTilesN, tiles); ++tiles_n) {
        if (tiles % tiles_n != 0 || tiles / tiles_n < std::min(tiles, kComputeUnits / 4)) {
            continue;
        }
        for (std::int64_t waves = 1; waves <= std::min(kMaxWaves, blocks); waves *= 2) {
            ConstantValues ahead{"blocks_ahead", {}};
            for (std::int64_t value = 1; value <= blocks / waves; ++value) {
                if (blocks % (waves * value) == 0 &&
                    fits(problem, {max_m, tiles_n, waves, lane_rows, value}, blocks)) {
                    ahead.values.push_back(value);
                }
            }
            if (!ahead.values.empty()) {
                space.push_back({{"tiles_n", {tiles_n}},
                                 {"waves", {waves}},
                                 {"lane_rows", {lane_rows}},
                                 std::move(ahead)});
            }
        }
    }
    return space;
}

}  // namespace kiln::operators
