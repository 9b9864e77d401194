#include "runtime/operators/fused_moe_derivation_gfx950.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/operators/fused_moe.hpp"
#include "runtime/operators/fused_moe_small_m.hpp"

namespace kiln::operators {

namespace {

constexpr std::int64_t kComputeUnits = 256;
constexpr std::int64_t kMostColumns = 16;
constexpr std::int64_t kWavesPerSimd = 2;

// Where the operator stops to pay.
std::int64_t last_m(const FusedMoeProblem& problem) {
    std::int64_t crossover = 10240 / problem.intermediate;
    if (problem.fp8) {
        crossover = problem.intermediate == 128 ? 48 : 5120 / problem.intermediate;
    }
    return std::clamp(crossover, std::int64_t{1},
                      std::min(kFusedMoeMostTokens, kFusedMoeMostPairs / problem.slots));
}

// The most up to `limit` that divides `whole`.
std::int64_t largest_divisor(std::int64_t whole, std::int64_t limit) {
    while (whole % limit != 0) {
        --limit;
    }
    return limit;
}

Bucket make_bucket(std::int64_t max_m, std::int64_t columns, std::int64_t gate_up_waves,
                   std::int64_t row_tiles, std::int64_t down_waves) {
    return {max_m,
            std::string(fused_moe_small_m_gfx950().id()),
            {{"columns", columns},
             {"gate_up_waves", gate_up_waves},
             {"row_tiles", row_tiles},
             {"down_waves", down_waves}}};
}

// 1. and 3. of the header. The first that fits is the one.
std::vector<Bucket> choices(const FusedMoeProblem& problem, std::int64_t max_m) {
    const std::int64_t gate_up_waves = largest_divisor(problem.hidden / 128, 4);
    const auto row_tiles = [&](std::int64_t most) { return largest_divisor(problem.hidden / 16, most); };
    if (max_m > 1) {
        return {make_bucket(max_m, kMostColumns, gate_up_waves, 1, max_m <= 4 ? 8 : 16)};
    }
    if (problem.fp8) {
        return {make_bucket(max_m, 8, gate_up_waves, row_tiles(2), 4)};
    }
    // No more than matters: the product stays within 64 bits.
    const std::int64_t share =
        problem.slots * std::min(problem.intermediate, kMostColumns * kComputeUnits) / kComputeUnits;
    const auto with_columns = [&](std::int64_t columns) {
        return make_bucket(max_m, columns, gate_up_waves, row_tiles(4), problem.slots);
    };
    return {with_columns(std::clamp(share, std::int64_t{1}, kMostColumns)),
            with_columns(share >= kMostColumns ? kMostColumns : 8)};
}

}  // namespace

Result<std::vector<Bucket>> derive_fused_moe_small_m_gfx950(const Problem& problem) {
    const auto dimensions = std::get<FusedMoeProblem>(fused_moe().typed(problem));
    const std::int64_t end = last_m(dimensions);
    std::vector<Bucket> buckets;
    for (const std::int64_t max_m : {std::int64_t{1}, std::int64_t{4}, std::int64_t{16}, end}) {
        if (max_m > end || (!buckets.empty() && max_m <= buckets.back().max_m)) {
            continue;
        }
        for (Bucket& choice : choices(dimensions, max_m)) {
            if (fused_moe_small_m_gfx950().check(problem, choice).empty()) {
                choice.budget = {kWavesPerSimd, fused_moe_small_m_lds(problem, choice)};
                buckets.push_back(std::move(choice));
                break;
            }
        }
    }
    if (buckets.empty()) {
        return fail(ErrorCode::bad_input, Stage::table,
                    fmt::format("fused_moe {}: expected weights of an expert below 4 GiB, found a problem "
                                "that no constants of {} serve",
                                format_problem(fused_moe(), problem), fused_moe_small_m_gfx950().id()));
    }
    return buckets;
}

}  // namespace kiln::operators
