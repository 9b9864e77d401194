#include "runtime/operators/linear_template.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "runtime/operators/operator.hpp"

namespace kiln::operators {

namespace {

constexpr std::int64_t kTile = 16;     // rows and columns of a matrix tile
constexpr std::int64_t kBlock = 128;   // k that share a scale
constexpr std::int64_t kMaxRows = 64;  // of M in one launch
constexpr std::int64_t kMaxWeightBytes = std::int64_t{1} << 32;
constexpr std::int64_t kLdsBytes = 160 * 1024;
constexpr std::int64_t kRegisters = 112;  // of 128 a lane at four waves a SIMD

struct ConstantName {
    std::string_view row;     // in a shape table
    std::string_view header;  // in constants.h
};
constexpr ConstantName kConstants[] = {
    {"tiles_n", "kTilesN"},
    {"waves", "kWaves"},
    {"lane_rows", "kLaneRows"},
    {"blocks_ahead", "kBlocksAhead"},
};

constexpr KernelArgument kKernargs[] = {
    {"x", offsetof(LinearKernargs, x), sizeof(LinearKernargs::x)},
    {"w", offsetof(LinearKernargs, w), sizeof(LinearKernargs::w)},
    {"w_scale", offsetof(LinearKernargs, w_scale), sizeof(LinearKernargs::w_scale)},
    {"out", offsetof(LinearKernargs, out), sizeof(LinearKernargs::out)},
    {"m", offsetof(LinearKernargs, m), sizeof(LinearKernargs::m)},
    {"ldx", offsetof(LinearKernargs, ldx), sizeof(LinearKernargs::ldx)},
};

std::int64_t constant(const Bucket& bucket, std::string_view name) {
    return bucket.constants.find(name)->second;
}

LinearProblem dimensions(const Problem& problem) {
    return std::get<LinearProblem>(linear().typed(problem));
}

class SmallM final : public Template {
  public:
    std::string_view id() const override { return "linear/small_m"; }
    std::span<const KernelArgument> kernargs() const override { return kKernargs; }
    std::uint32_t kernarg_bytes() const override { return sizeof(LinearKernargs); }

    std::vector<tables::RowFault> check(const Problem& problem, const Bucket& bucket) const override;

    std::string kernel_name(const Problem& problem, const Bucket& bucket) const override {
        const auto [n, k] = dimensions(problem);
        return fmt::format("kiln_linear_n{}_k{}_m{}", n, k, bucket.max_m);
    }

    std::vector<std::pair<std::string, std::int64_t>> constants(const Problem& problem,
                                                                const Bucket& bucket) const override {
        const auto [n, k] = dimensions(problem);
        std::vector<std::pair<std::string, std::int64_t>> all{{"kN", n}, {"kK", k}, {"kMaxM", bucket.max_m}};
        for (const ConstantName& name : kConstants) {
            all.emplace_back(name.header, constant(bucket, name.row));
        }
        return all;
    }

    device::LaunchShape launch_shape(const Problem& problem, const Bucket& bucket) const override {
        const std::int64_t columns = kTile * constant(bucket, "tiles_n");
        return {{static_cast<std::uint32_t>(dimensions(problem).n / columns), 1, 1},
                {static_cast<std::uint32_t>(64 * constant(bucket, "waves")), 1, 1},
                0};
    }

    std::vector<std::string> options() const override {
        // The argument names are what the loader compares with the plan's; without the option they are not
        // recorded.
        return {"-O3", "-std=c++20", "-mcumode", "-fhip-kernel-arg-name", "-Wall", "-Wextra"};
    }

    std::string probe() const override {
        return "typedef int v8 __attribute__((ext_vector_type(8))); typedef float v4 "
               "__attribute__((ext_vector_type(4)));\n"
               "extern \"C\" __global__ void kiln_probe(v8 a, v4* c) { "
               "*c = __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(a, a, *c, 0, 0, 0, 0, 0, 0); }\n";
    }
};

std::vector<tables::RowFault> SmallM::check(const Problem& problem, const Bucket& bucket) const {
    std::vector<tables::RowFault> faults;
    for (const ConstantName& name : kConstants) {
        if (!bucket.constants.contains(name.row)) {
            faults.push_back({"/constants", fmt::format("the constant {}", name.row), "none"});
        }
    }
    for (const auto& [name, value] : bucket.constants) {
        if (std::none_of(std::begin(kConstants), std::end(kConstants),
                         [&, &wanted = name](const ConstantName& known) { return known.row == wanted; })) {
            faults.push_back({"/constants/" + name, "tiles_n, waves, lane_rows or blocks_ahead", name});
        }
    }
    if (!faults.empty()) {
        return faults;
    }

    const auto [n, k] = dimensions(problem);
    const std::int64_t tiles_n = constant(bucket, "tiles_n");
    const std::int64_t waves = constant(bucket, "waves");
    const std::int64_t lane_rows = constant(bucket, "lane_rows");
    const std::int64_t blocks_ahead = constant(bucket, "blocks_ahead");
    const auto require = [&](bool holds, std::string pointer, std::string expected, std::int64_t found) {
        if (!holds) {
            faults.push_back({std::move(pointer), std::move(expected), fmt::format("{}", found)});
        }
        return holds;
    };

    // The first two keep everything below within 64 bits, so nothing more is said of a row that breaks one.
    const std::int64_t most_n = (kMaxWeightBytes - 1) / k;
    const bool weights_fit = require(
        n <= most_n, "/constants",
        fmt::format("n at most {} where k = {}: weights are reached by 32-bit offsets", most_n, k), n);
    if (!require(bucket.max_m <= kMaxRows, "/max_m", fmt::format("at most {}", kMaxRows), bucket.max_m) ||
        !weights_fit) {
        return faults;
    }
    const std::int64_t tiles_m = (bucket.max_m + kTile - 1) / kTile;
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
        return faults;
    }
    const std::int64_t blocks = k / kBlock / waves;
    if (!require(blocks_ahead >= 1 && blocks % blocks_ahead == 0, "/constants/blocks_ahead",
                 fmt::format("1 or more, a divisor of k / 128 / waves = {}", blocks), blocks_ahead)) {
        return faults;
    }
    const std::int64_t lds = waves == 1 ? 0 : 1024 * waves * tiles_n * tiles_m;
    require(lds <= kLdsBytes, "/constants/waves",
            fmt::format("at most {} bytes of LDS: 1024 * waves * tiles_n * tiles_m", kLdsBytes), lds);
    const std::int64_t registers = blocks_ahead * (8 * tiles_n + tiles_m * lane_rows) + 4 * tiles_n * tiles_m;
    require(registers <= kRegisters, "/constants/blocks_ahead",
            fmt::format("at most {} registers: blocks_ahead * (8 * tiles_n + tiles_m * lane_rows) + 4 * "
                        "tiles_n * tiles_m",
                        kRegisters),
            registers);
    return faults;
}

}  // namespace

const Template& linear_small_m() {
    static const SmallM source;
    return source;
}

}  // namespace kiln::operators
