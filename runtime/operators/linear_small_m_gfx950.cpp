#include <string>

#include <fmt/format.h>

#include "runtime/operators/gfx950.hpp"
#include "runtime/operators/linear_derivation_gfx950.hpp"
#include "runtime/operators/linear_small_m.hpp"

namespace kiln::operators {

namespace {

constexpr std::int64_t kRegisters = 112;  // of 128 a lane at four waves a SIMD

class SmallM final : public LinearSmallM {
  public:
    std::string_view processor() const override { return "gfx950"; }

    std::vector<std::string> options() const override { return gfx950_options(); }
    Space space(const Problem& problem, std::int64_t max_m) const override {
        return linear_small_m_space_gfx950(problem, max_m);
    }

    std::string probe() const override {
        return "typedef int v8 __attribute__((ext_vector_type(8))); typedef float v4 "
               "__attribute__((ext_vector_type(4)));\n"
               "extern \"C\" __global__ void kiln_probe(v8 a, v4* c) { "
               "*c = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(a, a, *c, 0, 0, 0, 0, 0, 0); }\n";
    }

  protected:
    device::LaunchShape launch_shape(const Problem& problem, const Bucket& bucket) const override {
        const std::int64_t columns = kTile * constant(bucket, "tiles_n");
        return {{static_cast<std::uint32_t>(dimensions(problem).n / columns), 1, 1},
                {static_cast<std::uint32_t>(64 * constant(bucket, "waves")), 1, 1},
                0};
    }

    std::span<const ConstantName> constant_names() const override {
        static constexpr ConstantName kNames[] = {
            {"tiles_n", "kTilesN"},
            {"waves", "kWaves"},
            {"lane_rows", "kLaneRows"},
            {"blocks_ahead", "kBlocksAhead"},
        };
        return kNames;
    }
    std::int64_t max_rows() const override { return 64; }

    void check_constants(const LinearProblem& problem, const Bucket& bucket, Demands& require) const override;
};

void SmallM::check_constants(const LinearProblem& problem, const Bucket& bucket, Demands& require) const {
    const auto [n, k] = problem;
    const std::int64_t tiles_n = constant(bucket, "tiles_n");
    const std::int64_t waves = constant(bucket, "waves");
    const std::int64_t lane_rows = constant(bucket, "lane_rows");
    const std::int64_t blocks_ahead = constant(bucket, "blocks_ahead");
    const std::int64_t tiles_m = ceil_div(bucket.max_m, kTile);
    const bool tiles_fit =
        require(tiles_n >= 1 && tiles_n <= 8 && n / kTile % tiles_n == 0, "/constants/tiles_n",
                fmt::format("1 to 8, a divisor of n / 16 = {}", n / kTile), tiles_n);
    const bool waves_fit = require(waves >= 1 && waves <= 16 && k / kBlock % waves == 0, "/constants/waves",
                                   fmt::format("1 to 16, a divisor of k / 128 = {}", k / kBlock), waves);
    const bool rows_fit =
        require(lane_rows == 16 || ((lane_rows == 8 || lane_rows == 4) && bucket.max_m <= lane_rows),
                "/constants/lane_rows",
                fmt::format("16, or 4 or 8 where that is not below max_m = {}", bucket.max_m), lane_rows);
    if (!tiles_fit || !waves_fit || !rows_fit) {
        return;
    }
    const std::int64_t blocks = k / kBlock / waves;
    if (!require(blocks_ahead >= 1 && blocks % blocks_ahead == 0, "/constants/blocks_ahead",
                 fmt::format("1 or more, a divisor of k / 128 / waves = {}", blocks), blocks_ahead)) {
        return;
    }
    const std::int64_t lds = waves == 1 ? 0 : 1024 * waves * tiles_n * tiles_m;
    require(lds <= kGfx950LdsBytes, "/constants/waves",
            fmt::format("at most {} bytes of LDS: 1024 * waves * tiles_n * tiles_m", kGfx950LdsBytes), lds);
    const std::int64_t registers = blocks_ahead * (8 * tiles_n + tiles_m * lane_rows) + 4 * tiles_n * tiles_m;
    require(registers <= kRegisters, "/constants/blocks_ahead",
            fmt::format("at most {} registers: blocks_ahead * (8 * tiles_n + tiles_m * lane_rows) + 4 * "
                        "tiles_n * tiles_m",
                        kRegisters),
            registers);
}

}  // namespace

const KernelTemplate& linear_small_m_gfx950() {
    static const SmallM source;
    return source;
}

}  // namespace kiln::operators
