#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "device/gfx950/election.h"
#include "runtime/operators/constants_check.hpp"
#include "runtime/operators/gfx950.hpp"
#include "runtime/operators/router_one_launch.hpp"

namespace kiln::operators {

namespace {

constexpr std::int64_t kWaveLanes = 64;
constexpr std::int64_t kLoadElements = 8;  // bf16 in 16 bytes
constexpr std::int64_t kMaxWaves = 16;
constexpr std::int64_t kRegisters = 96;  // of 128 a lane where a work-group has 16 waves
constexpr std::int64_t kComputeUnits = 256;
constexpr std::int64_t kMostRows = 4;
constexpr std::int64_t kFewestWaves = 4;
constexpr std::int64_t kBucketEnds[] = {1, 2, 4, 8};

constexpr ConstantName kConstants[] = {{"rows", "kRows"}, {"waves", "kWaves"}};

RouterProblem dimensions(const Problem& problem) {
    return std::get<RouterProblem>(router().typed(problem));
}

std::int64_t pieces(const RouterProblem& problem) {
    return problem.hidden / kLoadElements;
}

std::int64_t steps_of(const RouterProblem& problem, std::int64_t waves) {
    return ceil_div(pieces(problem), kWaveLanes * waves);
}

// Of constants that the rule may choose. As many waves as a SIMD takes need 64 registers a lane, 16 waves of
// a work-group 128.
tables::Budget budget(const RouterProblem& problem, const Bucket& bucket) {
    const std::int64_t rows = constant(bucket, "rows");
    const std::int64_t waves = constant(bucket, "waves");
    const bool is_small = rows <= 2 && steps_of(problem, waves) <= 2;
    const std::int64_t sums = ceil_div(rows * bucket.max_m, 4) * 4;
    return {.waves_per_simd = is_small ? 8 : 4, .lds_bytes = 4 * waves * sums + 4};
}

class OneLaunch final : public KernelTemplate {
  public:
    std::string_view id() const override { return "router/one_launch"; }
    std::string_view processor() const override { return "gfx950"; }

    std::vector<tables::RowFault> check(const Problem& problem, const Bucket& bucket) const override;

    std::string kernel_name(const Problem& problem, const Bucket& bucket) const override {
        const auto [hidden, experts, top_k, shared] = dimensions(problem);
        return fmt::format("kiln_router_h{}_e{}_k{}_s{}_m{}", hidden, experts, top_k, shared, bucket.max_m);
    }
    Space space(const Problem&, std::int64_t) const override {
        return {{{"rows", {1, 2, 4}}, {"waves", {4, 8, 16}}}};
    }

    std::vector<KernelLaunch> kernels(const Problem& problem, const Bucket& bucket) const override {
        const RouterProblem sizes = dimensions(problem);
        const std::int64_t work_groups = ceil_div(sizes.experts + sizes.shared, constant(bucket, "rows"));
        const auto threads = static_cast<std::uint32_t>(kWaveLanes * constant(bucket, "waves"));
        return {{kernel_name(problem, bucket),
                 {{}, {threads, 1, 1}, 0},
                 {.fixed = static_cast<std::uint32_t>(work_groups)}}};
    }
    WorkspaceNeed workspace(const Problem& problem, const Bucket& bucket, std::int64_t /*m*/) const override {
        const std::int64_t logits = ceil_div(dimensions(problem).experts, kLoadElements) * kLoadElements;
        return {device::kElectionBytes, bucket.max_m * (2 * logits + 4)};
    }
    std::vector<std::pair<std::string, std::int64_t>> constants(const Problem& problem,
                                                                const Bucket& bucket) const override {
        const auto [hidden, experts, top_k, shared] = dimensions(problem);
        return {{"kHidden", hidden},
                {"kExperts", experts},
                {"kTopK", top_k},
                {"kShared", shared},
                {"kMaxM", bucket.max_m},
                {"kRows", constant(bucket, "rows")},
                {"kWaves", constant(bucket, "waves")}};
    }

    const KernargBlock& kernargs() const override { return router_kernargs(); }

    std::vector<std::string> options() const override { return gfx950_options(); }
    std::string probe() const override {
        return "typedef __bf16 v2 __attribute__((ext_vector_type(2)));\n"
               "extern \"C\" __global__ void kiln_probe(v2 a, float* c) { "
               "*c = __builtin_amdgcn_fdot2_f32_bf16(a, a, *c, false); }\n";
    }
};

std::vector<tables::RowFault> OneLaunch::check(const Problem& problem, const Bucket& bucket) const {
    std::vector<tables::RowFault> faults = check_constant_names(*this, bucket, kConstants);
    if (!faults.empty()) {
        return faults;
    }
    const std::int64_t rows = constant(bucket, "rows");
    const std::int64_t waves = constant(bucket, "waves");
    Demands require;
    const bool tokens_fit =
        require(bucket.max_m <= kWaveLanes, "/max_m", fmt::format("at most {}", kWaveLanes), bucket.max_m);
    const bool waves_fit = require(waves >= 1 && waves <= kMaxWaves, "/constants/waves",
                                   fmt::format("1 to {}", kMaxWaves), waves);
    const bool rows_fit =
        tokens_fit && require(rows >= 1 && rows <= kWaveLanes / bucket.max_m, "/constants/rows",
                              fmt::format("1 or more, rows * max_m at most {}", kWaveLanes), rows);
    if (waves_fit && rows_fit) {
        const std::int64_t steps = ceil_div(pieces(dimensions(problem)), kWaveLanes * waves);
        require(
            steps <= kRegisters && 4 * rows * steps + rows * bucket.max_m <= kRegisters, "/constants/rows",
            fmt::format("at most {} registers: 4 * rows * steps + rows * max_m, where steps = ceil(hidden / "
                        "8 / (64 * waves)) = {}",
                        kRegisters, steps),
            4 * rows * steps + rows * bucket.max_m);
    }
    return require.take();
}

}  // namespace

const KernelTemplate& router_one_launch_gfx950() {
    static const OneLaunch source;
    return source;
}

Result<std::vector<Bucket>> derive_router_one_launch_gfx950(const Problem& problem) {
    const RouterProblem sizes = dimensions(problem);
    std::int64_t rows = kMostRows;
    while (rows > 1 && ceil_div(sizes.experts + sizes.shared, rows) < kComputeUnits) {
        --rows;
    }
    std::vector<Bucket> buckets;
    for (const std::int64_t max_m : kBucketEnds) {
        const std::int64_t wanted = std::max({ceil_div(pieces(sizes), 2 * kWaveLanes), max_m, kFewestWaves});
        const std::int64_t waves = std::min({wanted, ceil_div(pieces(sizes), kWaveLanes), kMaxWaves});
        const auto accepted = [&](const Bucket& bucket) {
            return router_one_launch_gfx950().check(problem, bucket).empty();
        };
        Bucket bucket{
            max_m, std::string(router_one_launch_gfx950().id()), {{"rows", rows}, {"waves", waves}}};
        while (!accepted(bucket) && bucket.constants["rows"] > 1) {
            --bucket.constants["rows"];
        }
        if (!accepted(bucket)) {
            break;
        }
        bucket.budget = budget(sizes, bucket);
        buckets.push_back(std::move(bucket));
    }
    if (buckets.empty()) {
        return fail(
            ErrorCode::bad_input, Stage::table,
            fmt::format("router: expected a hidden dimension whose rows fit the registers of {} waves, "
                        "found {}",
                        kMaxWaves, sizes.hidden));
    }
    return buckets;
}

}  // namespace kiln::operators
