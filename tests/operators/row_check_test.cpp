#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "runtime/operators/operator.hpp"

using namespace kiln::operators;
using kiln::tables::Constants;
using kiln::tables::Row;
using kiln::tables::RowFault;

namespace {

Row good_row() {
    Row row;
    row.operator_name = "linear";
    row.problem = {{"n", std::int64_t{5120}}, {"k", std::int64_t{4096}}};
    row.target = *kiln::tables::parse_target("gfx950");
    row.buckets = {
        {4, "linear/small_m", {{"tiles_n", 2}, {"waves", 8}, {"lane_rows", 4}, {"blocks_ahead", 4}}},
        {32, "linear/small_m", {{"tiles_n", 2}, {"waves", 16}, {"lane_rows", 16}, {"blocks_ahead", 2}}},
    };
    return row;
}

Row sm_90a_row() {
    Row row = good_row();
    row.target = *kiln::tables::parse_target("sm_90a");
    row.buckets = {{8,
                    "linear/small_m",
                    {{"split_k", 2},
                     {"tiles_n", 5},
                     {"warp_tiles", 5},
                     {"warps_k", 8},
                     {"steps", 8},
                     {"stages", 8},
                     {"early_steps", 4}}}};
    return row;
}

// The only fault of the row, or a failed check.
RowFault fault_of(Row row) {
    const std::vector<RowFault> faults = check_row(row);
    REQUIRE(faults.size() == 1);
    return faults.front();
}

Row with(std::size_t bucket, const char* constant, std::int64_t value) {
    Row row = good_row();
    row.buckets[bucket].constants[constant] = value;
    return row;
}

}  // namespace

TEST_CASE("a row whose constants tile its problem is accepted, and its problem completed") {
    Row row = good_row();
    CHECK(check_row(row).empty());
    CHECK(row.problem.contains("x_type"));
}

TEST_CASE("a row's operator, fields and template must exist") {
    Row row = good_row();
    row.operator_name = "linaer";
    CHECK(fault_of(row).pointer == "/operator");

    row = good_row();
    row.problem["m"] = std::int64_t{3};
    CHECK(fault_of(row).pointer == "/problem/m");

    row = good_row();
    row.problem["n"] = std::string("many");
    CHECK(fault_of(row).pointer == "/problem/n");

    row = good_row();
    row.problem.erase("k");
    CHECK(fault_of(row).pointer == "/problem/k");

    row = good_row();
    row.buckets[1].template_id = "linear/large_m";
    const RowFault fault = fault_of(row);
    CHECK(fault.pointer == "/buckets/1/template");
    CHECK(fault.found == "linear/large_m");
}

TEST_CASE("the same max_m stands twice only where the first is not deterministic and the second is") {
    Row row = good_row();
    row.buckets[1].max_m = row.buckets[0].max_m;
    const RowFault fault = fault_of(row);
    CHECK(fault.pointer == "/buckets/1/max_m");
    CHECK(fault.expected.find("a deterministic kernel behind one that is not") != std::string::npos);
}

TEST_CASE("a row that the operator would always decline is a fault") {
    Row row = good_row();
    row.problem["bias"] = std::int64_t{1};
    CHECK(fault_of(row).pointer == "/problem");
    row = good_row();
    row.problem["k"] = std::int64_t{4000};
    CHECK(fault_of(row).pointer == "/problem");
}

TEST_CASE("constants must be those of the template") {
    Row row = good_row();
    row.buckets[0].constants.erase("waves");
    CHECK(fault_of(row).pointer == "/buckets/0/constants");
    CHECK(fault_of(with(1, "stages", 2)).pointer == "/buckets/1/constants/stages");
}

TEST_CASE("constants must tile the problem") {
    CHECK(fault_of(with(0, "tiles_n", 3)).pointer == "/buckets/0/constants/tiles_n");  // 320 tiles
    CHECK(fault_of(with(0, "tiles_n", 0)).pointer == "/buckets/0/constants/tiles_n");
    CHECK(fault_of(with(0, "tiles_n", 10)).pointer == "/buckets/0/constants/tiles_n");
    CHECK(fault_of(with(1, "waves", 12)).pointer == "/buckets/1/constants/waves");  // 32 blocks
    CHECK(fault_of(with(1, "waves", 32)).pointer == "/buckets/1/constants/waves");
    CHECK(fault_of(with(1, "lane_rows", 8)).pointer == "/buckets/1/constants/lane_rows");  // max_m is 32
    CHECK(fault_of(with(0, "lane_rows", 5)).pointer == "/buckets/0/constants/lane_rows");
    CHECK(fault_of(with(1, "blocks_ahead", 3)).pointer == "/buckets/1/constants/blocks_ahead");
    CHECK(fault_of(with(1, "blocks_ahead", 0)).pointer == "/buckets/1/constants/blocks_ahead");
}

TEST_CASE("a bucket must fit the registers, the LDS and the rows of the template") {
    Row row = with(1, "waves", 1);  // 32 blocks for one wave: blocks_ahead could be 32
    row.buckets[1].constants["blocks_ahead"] = 4;
    CHECK(fault_of(row).pointer == "/buckets/1/constants/blocks_ahead");  // 4 * (16 + 32) + 16 registers

    row = with(1, "tiles_n", 8);
    row.buckets[1].constants["blocks_ahead"] = 1;
    const std::vector<RowFault> faults = check_row(row);  // 1024 * 16 * 8 * 2 bytes of LDS
    REQUIRE(!faults.empty());
    CHECK(faults.front().pointer == "/buckets/1/constants/waves");

    row = good_row();
    row.buckets[1].max_m = 65;
    bool found = false;
    for (const RowFault& fault : check_row(row)) {
        found |= fault.pointer == "/buckets/1/max_m";
    }
    CHECK(found);
}

TEST_CASE("dimensions whose product no integer holds are a fault like any too large ones") {
    for (const auto& [n, k] : {std::pair{std::int64_t{1} << 40, std::int64_t{1} << 40},
                               std::pair{std::int64_t{1} << 60, std::int64_t{128}},
                               std::pair{std::int64_t{16}, std::int64_t{1} << 62},
                               std::pair{std::int64_t{1} << 16, std::int64_t{1} << 16}}) {
        Row row = good_row();
        row.buckets.resize(1);
        row.problem["n"] = n;
        row.problem["k"] = k;
        const RowFault fault = fault_of(row);
        CHECK(fault.pointer == "/buckets/0/constants");
        CHECK(fault.found == std::to_string(n));
    }
    Row row = good_row();
    row.buckets[1].max_m = std::numeric_limits<std::int64_t>::max();
    CHECK(fault_of(row).pointer == "/buckets/1/max_m");
}

TEST_CASE("constants are each processor's own") {
    Row row = good_row();
    row.target = *kiln::tables::parse_target("sm_90a");
    const std::vector<RowFault> faults = check_row(row);
    CHECK(std::ranges::any_of(faults, [](const RowFault& fault) {
        return fault.pointer == "/buckets/0/constants" && fault.expected == "the constant split_k";
    }));
    CHECK(std::ranges::any_of(faults, [](const RowFault& fault) {
        return fault.pointer == "/buckets/0/constants/waves" && fault.found == "waves";
    }));
    row = sm_90a_row();
    CHECK(check_row(row).empty());
    // A source that a user brings for another processor of the vendor takes the constants of ours.
    row = good_row();
    row.target = *kiln::tables::parse_target("gfx942");
    CHECK(check_row(row).empty());
    row = sm_90a_row();
    row.target = *kiln::tables::parse_target("sm_100a");
    CHECK(check_row(row).empty());
}

TEST_CASE("constants for sm_90a must tile the problem, and fit the warps and the shared memory") {
    const auto pointer_with = [](const char* constant, std::int64_t value) {
        Row row = sm_90a_row();
        row.buckets[0].constants[constant] = value;
        return fault_of(row).pointer.substr(std::string("/buckets/0/constants/").size());
    };
    CHECK(pointer_with("split_k", 3) == "split_k");
    CHECK(pointer_with("split_k", 16) == "split_k");
    CHECK(pointer_with("tiles_n", 0) == "tiles_n");
    CHECK(pointer_with("tiles_n", 33) == "tiles_n");
    CHECK(pointer_with("warp_tiles", 0) == "warp_tiles");
    CHECK(pointer_with("warp_tiles", 6) == "warp_tiles");
    CHECK(pointer_with("warps_k", 3) == "warps_k");     // 16 blocks
    CHECK(pointer_with("warp_tiles", 1) == "warps_k");  // five times eight warps
    CHECK(pointer_with("steps", 5) == "steps");
    CHECK(pointer_with("stages", 9) == "stages");
    CHECK(pointer_with("stages", 7) == "stages");  // eight warps and two blocks a step, and a ring
    CHECK(pointer_with("early_steps", 9) == "early_steps");
    CHECK(pointer_with("early_steps", 0) == "early_steps");
    CHECK(pointer_with("tiles_n", 8) == "stages");  // 256 KiB of weights
    Row row = sm_90a_row();
    row.buckets[0].max_m = 65;
    CHECK(fault_of(row).pointer == "/buckets/0/max_m");
}

TEST_CASE("a bucket for sm_90a is launched in whole clusters with what its shared memory holds") {
    Row row = sm_90a_row();
    REQUIRE(check_row(row).empty());
    const KernelTemplate* source = find_kernel_template("linear/small_m", "sm_90a");
    REQUIRE(source != nullptr);
    kiln::device::LaunchShape shape = source->kernels(row.problem, row.buckets[0]).front().shape_for(1);
    CHECK(shape.grid.x == 128);
    CHECK(shape.block.x == 32 * 9);
    // Weights, tokens, the cluster's sums, scales, barriers.
    CHECK(shape.dynamic_lds_bytes == 163840 + 16384 + 2560 + (8 + 5) * 16 * 4 + 17 * 8);
    // The last cluster has fewer tiles.
    row.buckets[0].constants["tiles_n"] = 6;
    row.buckets[0].constants["warp_tiles"] = 6;
    row.buckets[0].constants["stages"] = row.buckets[0].constants["early_steps"] = 2;
    row.buckets[0].constants["warps_k"] = 2;
    REQUIRE(check_row(row).empty());
    shape = source->kernels(row.problem, row.buckets[0]).front().shape_for(1);
    CHECK(shape.grid.x == 108);
    CHECK(shape.block.x == 32 * 3);
    CHECK(find_template("linear/small_m", "gfx1100") == find_template("linear/small_m", "gfx950"));
    CHECK(find_template("linear/large_m", "sm_90a") == nullptr);
}

TEST_CASE("a bucket's launch shape and kernel name follow from problem and constants") {
    Row row = good_row();
    REQUIRE(check_row(row).empty());
    const KernelTemplate* source = find_kernel_template("linear/small_m", "gfx950");
    REQUIRE(source != nullptr);
    const kiln::device::LaunchShape shape = source->kernels(row.problem, row.buckets[1]).front().shape_for(1);
    CHECK(shape.grid.x == 160);
    CHECK(shape.block.x == 1024);
    CHECK(shape.dynamic_lds_bytes == 0);
    CHECK(source->kernel_name(row.problem, row.buckets[1]) == "kiln_linear_n5120_k4096_m32");
}

namespace {

Row general_row() {
    Row row = good_row();
    row.problem = {{"k", std::int64_t{4096}}};
    row.open = {{"n", {32, 8192}}};
    row.problems = {{{"n", std::int64_t{5120}}}, {{"n", std::int64_t{64}}}};
    row.buckets.pop_back();
    return row;
}

}  // namespace

TEST_CASE("a general row is completed but for its open fields, and so are the problems that it lists") {
    Row row = general_row();
    REQUIRE(check_row(row).empty());
    CHECK(!row.problem.contains("n"));
    CHECK(row.problem.at("x_type") == kiln::tables::FieldValue("bf16"));
    Row exact = good_row();
    REQUIRE(check_row(exact).empty());
    CHECK(row.problems[0] == exact.problem);
    CHECK(row.admits(exact.problem));

    // An optional field that is open takes no default.
    row = general_row();
    row.open["bias"] = {};
    row.problems.clear();
    REQUIRE(check_row(row).empty());
    CHECK(!row.problem.contains("bias"));
}

TEST_CASE("a general row is an exact one for each problem that it admits, if its constants tile that") {
    Row row = general_row();
    REQUIRE(check_row(row).empty());
    Row exact = good_row();
    REQUIRE(check_row(exact).empty());
    const auto at = row_at(row, exact.problem);
    REQUIRE(at);
    CHECK(at->problem == exact.problem);
    exact.buckets.pop_back();
    CHECK(at->buckets == exact.buckets);
    CHECK(!at->is_general());

    Problem odd = exact.problem;
    odd["n"] = std::int64_t{48};  // three tiles, and tiles_n is 2
    row.origin = {"t.json", 7};
    const auto refused = row_at(row, odd);
    REQUIRE(!refused);
    CHECK(refused.error().message ==
          "t.json:7 admits linear n=48 k=4096, but /buckets/0/constants/tiles_n: expected 1 to 8, a divisor "
          "of n / 16 = 3, found 2");
}

TEST_CASE("what is wrong with a general row is named") {
    const auto fault = [](auto change) {
        Row row = general_row();
        change(row);
        return fault_of(row);
    };
    CHECK(fault([](Row& row) { row.open["width"] = {}; }).pointer == "/problem/width");
    CHECK(fault([](Row& row) { row.open["x_type"] = {1, 2}; }).expected == "a word, or \"*\" for any");
    CHECK(fault([](Row& row) { row.open["n"] = {64, 32}; }).found == "64..32");
    CHECK(fault([](Row& row) { row.problem.erase("k"); }).pointer == "/problem/k");
    CHECK(fault([](Row& row) { row.problems[1] = {{"n", std::int64_t{16}}}; }).pointer == "/problems/1");
    CHECK(fault([](Row& row) { row.problems[1] = {{"n", "x"}}; }).pointer == "/problems/1/n");
    CHECK(fault([](Row& row) { row.problems[1] = {{"n", std::int64_t{33}}}; }).pointer == "/problems/1");
    const RowFault untiled = fault([](Row& row) { row.problems[1] = {{"n", std::int64_t{48}}}; });
    CHECK(untiled.pointer == "/buckets/0/constants/tiles_n");
    CHECK(untiled.expected == "1 to 8, a divisor of n / 16 = 3, for n=48 k=4096");
    CHECK(fault([](Row& row) { row.buckets.front().template_id = "linear/none"; }).pointer ==
          "/buckets/0/template");
    CHECK(fault([](Row& row) {
              row.buckets.front().max_pairs = 64;
              row.problems.clear();
          }).expected == "max_m: a token of linear has no slots");
    Row exact = good_row();
    exact.problems = {exact.problem};
    CHECK(fault_of(exact).pointer == "/problems");
}
