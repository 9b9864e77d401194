// The template fused_moe/mxmoe: constants, stages, workspace, what a launch packs, and the rule for buckets.
#include "runtime/operators/fused_moe_mxmoe.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/operators/moe_sort_templates.hpp"
#include "runtime/operators/mxmoe_derivation_gfx950.hpp"

using namespace kiln::operators;

namespace {

Problem problem(std::vector<std::string> words) {
    const auto parsed = parse_problem(fused_moe(), words);
    REQUIRE_MESSAGE(parsed, parsed.error().message);
    return *parsed;
}

Problem qwen(std::int64_t experts = 512, std::int64_t slots = 10, std::int64_t intermediate = 512) {
    return problem({"hidden=4096", "intermediate=" + std::to_string(intermediate),
                    "experts=" + std::to_string(experts), "slots=" + std::to_string(slots)});
}

Bucket bucket(std::int64_t max_m, std::int64_t block_m, std::int64_t f16in, std::int64_t g2) {
    return {max_m,
            "fused_moe/mxmoe",
            {{"block_m", block_m}, {"f16in", f16in}, {"g1_nt", 1}, {"g2", g2}, {"g2_nt", 0}}};
}

std::string fault_at(const Problem& asked, const Bucket& given) {
    const auto faults = fused_moe_mxmoe_gfx950().check(asked, given);
    REQUIRE(faults.size() <= 1);
    return faults.empty() ? "" : faults.front().pointer;
}

std::vector<std::string> stage_ids(const Bucket& given) {
    std::vector<std::string> ids;
    for (const PipelineStage& stage : fused_moe_mxmoe_gfx950().stages(qwen(), given)) {
        ids.push_back(stage.bucket.template_id);
        CHECK(stage.source->id() == stage.bucket.template_id);
        CHECK(stage.source->check(stage.problem, stage.bucket).empty());
        CHECK(stage.kernarg_offset ==
              (stage.op == &moe_sort() ? offsetof(FusedMoeBlock, sort) : offsetof(FusedMoeBlock, mxmoe)));
    }
    return ids;
}

}  // namespace

TEST_CASE("fused_moe/mxmoe: what constants must satisfy") {
    const Bucket served = bucket(128, 16, 1, 0);
    CHECK(fault_at(qwen(), served).empty());
    CHECK(fault_at(qwen(), bucket(128, 16, 0, 2)).empty());
    CHECK(fault_at(qwen(), bucket(128, 24, 0, 0)) == "/constants/block_m");
    CHECK(fault_at(qwen(), bucket(128, 32, 1, 0)) == "/constants/f16in");
    CHECK(fault_at(qwen(), bucket(128, 16, 2, 0)) == "/constants/f16in");
    CHECK(fault_at(qwen(), bucket(128, 64, 0, 3)) == "/constants/g2");
    CHECK(fault_at(qwen(), bucket(128, 64, 0, -1)) == "/constants/g2");
    for (const char* name : {"g1_nt", "g2_nt"}) {
        Bucket other = served;
        other.constants[name] = 2;
        CHECK(fault_at(qwen(), other) == "/constants/" + std::string(name));
        other.constants.erase(name);
        CHECK(fault_at(qwen(), other) == "/constants");
    }
    // x below 2 GiB.
    CHECK(fault_at(qwen(), bucket(262143, 128, 0, 1)).empty());
    CHECK(fault_at(qwen(), bucket(262144, 128, 0, 1)) == "/max_m");
    CHECK(fault_at(qwen(512, 10, 384), served) == "/template");
    CHECK(fault_at(problem({"hidden=4224", "intermediate=512", "experts=8", "slots=2"}), served) ==
          "/template");
    CHECK(fault_at(problem({"hidden=4096", "intermediate=512", "experts=8", "slots=2", "weights=fp8"}),
                   served) == "/template");
    CHECK(fault_at(problem({"hidden=65536", "intermediate=32768", "experts=8", "slots=2"}), served) ==
          "/template");
    // As wide as the sort zeroes rows.
    CHECK(fault_at(problem({"hidden=262144", "intermediate=256", "experts=8", "slots=2"}), served).empty());
    CHECK(fault_at(problem({"hidden=262400", "intermediate=256", "experts=8", "slots=2"}), served) ==
          "/template");
}

TEST_CASE("fused_moe/mxmoe: the stages of each kind of bucket, and who they are shared with") {
    using Ids = std::vector<std::string>;
    CHECK(stage_ids(bucket(128, 16, 1, 0)) ==
          Ids{"moe_sort/general", "fused_moe/mxmoe_g1", "fused_moe/mxmoe_g2"});
    CHECK(stage_ids(bucket(3, 16, 1, 0)).front() == "moe_sort/compact");
    CHECK(stage_ids(bucket(128, 32, 0, 1)) == Ids{"moe_sort/general", "fused_moe/mxmoe_quantise",
                                                  "fused_moe/mxmoe_g1", "fused_moe/mxmoe_g2",
                                                  "fused_moe/mxmoe_combine"});
    CHECK(stage_ids(bucket(128, 128, 0, 2)).size() == 4);
    // The sort does not depend on I, the quantiser on hidden alone, and neither on the bucket's end.
    const auto names = [](const Problem& asked, const Bucket& given) {
        std::vector<std::string> all;
        for (const PipelineStage& stage : fused_moe_mxmoe_gfx950().stages(asked, given)) {
            all.push_back(stage.source->kernel_name(stage.problem, stage.bucket));
        }
        return all;
    };
    const auto tp2 = names(qwen(512, 10, 512), bucket(128, 32, 0, 1));
    const auto tp4 = names(qwen(512, 10, 256), bucket(1024, 32, 0, 1));
    CHECK(tp2[0] == tp4[0]);
    CHECK(tp2[1] == tp4[1]);
    CHECK(tp2[2] != tp4[2]);
    CHECK(tp2[4] == tp4[4]);
    CHECK(tp2 == names(qwen(512, 10, 512), bucket(1024, 32, 0, 1)));
    // The sort zeroes what is added to, and nothing else.
    CHECK(names(qwen(), bucket(128, 32, 0, 0))[0] == "kiln_moe_sort_general_e512_s10_b32_h4096");
    CHECK(names(qwen(), bucket(128, 32, 0, 1))[0] == "kiln_moe_sort_general_e512_s10_b32");
    CHECK(names(qwen(), bucket(128, 32, 0, 2))[0] == "kiln_moe_sort_general_e512_s10_b32");
    CHECK_FALSE(mxmoe_g1_gfx950().serves_rows());
    // Deterministic unless atomics add up.
    CHECK_FALSE(fused_moe_mxmoe_gfx950().is_deterministic(qwen(), bucket(128, 16, 1, 0)));
    CHECK(fused_moe_mxmoe_gfx950().is_deterministic(qwen(), bucket(128, 16, 1, 1)));
    CHECK(fused_moe_mxmoe_gfx950().is_deterministic(qwen(), bucket(128, 128, 0, 2)));
}

TEST_CASE("fused_moe/mxmoe: work-groups of both products are twice as large in blocks of 128 rows") {
    for (const std::int64_t block_m : {16, 32, 64, 128}) {
        for (const PipelineStage& stage :
             fused_moe_mxmoe_gfx950().stages(qwen(), bucket(1024, block_m, 0, 1))) {
            CAPTURE(stage.source->id());
            const bool multiplies = stage.source == &mxmoe_g1_gfx950() || stage.source == &mxmoe_g2_gfx950();
            for (const KernelLaunch& kernel : stage.source->kernels(stage.problem, stage.bucket)) {
                CHECK((kernel.shape.block.x == 512) == (multiplies && block_m == 128));
            }
        }
    }
}

TEST_CASE("fused_moe/mxmoe: the tuner's space is the fourteen couples, all of them legal") {
    std::size_t couples = 0;
    for (const SpaceProduct& product : fused_moe_mxmoe_gfx950().space(qwen(), 128)) {
        std::vector<kiln::tables::Constants> all{{}};
        for (const ConstantValues& constant : product) {
            std::vector<kiln::tables::Constants> longer;
            for (const auto& begun : all) {
                for (const std::int64_t value : constant.values) {
                    longer.push_back(begun);
                    longer.back().emplace(constant.name, value);
                }
            }
            all = std::move(longer);
        }
        for (const auto& constants : all) {
            CHECK(fused_moe_mxmoe_gfx950().check(qwen(), {128, "fused_moe/mxmoe", constants}).empty());
        }
        couples += all.size();
    }
    CHECK(couples == 14);
    CHECK(fused_moe_mxmoe_gfx950().space(qwen(512, 10, 384), 128).empty());
}

TEST_CASE("fused_moe/mxmoe: arrays of a workspace follow each other, and more tokens need no less") {
    for (const auto& [block_m, f16in, g2] : {std::tuple{16, 1, 0}, {16, 0, 1}, {32, 0, 0}, {128, 0, 2}}) {
        const Bucket given = bucket(1024, block_m, f16in, g2);
        const auto constants = std::get<MxmoeBucket>(fused_moe_mxmoe_gfx950().typed(qwen(), given));
        WorkspaceNeed before;
        for (const std::int64_t m : {1, 2, 51, 52, 1024}) {
            const MxmoeWorkspace at = mxmoe_workspace(constants, 4096, 512, 512, 10, m);
            const std::int64_t ends[] = {at.sort,      at.sorted_ids, at.sorted_weights, at.sorted_expert_ids,
                                         at.num_valid, at.x_q,        at.x_scale,        at.h_q,
                                         at.h_scale,   at.v,          at.flag,           at.scratch};
            CHECK(std::ranges::is_sorted(ends));
            CHECK(std::ranges::all_of(ends, [](std::int64_t end) { return end % 256 == 0; }));
            CHECK((at.x_scale - at.x_q >= m * 2048) == (f16in == 0));
            CHECK((at.flag - at.v >= m * 10 * 4096 * 2) == (g2 != 0));
            const WorkspaceNeed need = fused_moe_mxmoe_gfx950().workspace(qwen(), given, m);
            CHECK(need.zeroed == at.zeroed);
            CHECK(need.zeroed == (g2 == 2 ? 256 + 16 * 128 : 256));
            CHECK(need.scratch == at.scratch);
            CHECK(need.scratch >= before.scratch);
            before = need;
        }
    }
}

TEST_CASE("fused_moe/mxmoe: what a launch packs") {
    const auto typed = std::get<FusedMoeProblem>(fused_moe().typed(qwen()));
    alignas(256) static char zeroed[4096];
    alignas(256) static char scratch[16];  // addresses alone
    kiln_fused_moe_args args{};
    args.ldx = 4104;
    args.x = zeroed + 16;
    args.out = zeroed + 32;
    args.ids = reinterpret_cast<const std::int32_t*>(zeroed + 48);
    const FusedMoeBlock block =
        pack(typed, 5, args, {zeroed, scratch}, MxmoeBucket{32, false, MxmoeSum::fused});
    CHECK(block.sort.moe_buf == nullptr);
    CHECK(block.sort.zeroed == zeroed);
    CHECK(block.sort.m == 5);
    CHECK(block.mxmoe.sorted_ids == block.sort.sorted_ids);
    CHECK(block.mxmoe.num_valid == block.sort.num_valid);
    CHECK(block.mxmoe.x == args.x);
    CHECK(block.mxmoe.ids == args.ids);
    CHECK(block.mxmoe.ldx == 4104);
    CHECK(block.mxmoe.flag != nullptr);
    CHECK(block.mxmoe.x_q != nullptr);
    CHECK(block.mxmoe.v != nullptr);
    CHECK(block.mxmoe.counters == zeroed + 256);
    std::int32_t flag = 0;
    args.invalid_id = &flag;
    const FusedMoeBlock lean =
        pack(typed, 5, args, {zeroed, scratch}, MxmoeBucket{16, true, MxmoeSum::atomic});
    CHECK(lean.sort.moe_buf == args.out);
    CHECK(lean.mxmoe.flag == &flag);
    CHECK(lean.mxmoe.x_q == nullptr);
    CHECK(lean.mxmoe.v == nullptr);
    CHECK(lean.mxmoe.counters == nullptr);
}

TEST_CASE("fused_moe/mxmoe derivation: agrees with what is published where that agrees with itself") {
    const auto block_m = [](const Problem& asked, std::int64_t m) {
        for (const Bucket& chosen : derive_fused_moe_mxmoe_gfx950(asked, 0)) {
            if (chosen.max_m >= m) {
                return chosen.constants.find("block_m")->second;
            }
        }
        return std::int64_t{0};
    };
    for (const std::int64_t m : {1, 16, 128}) {
        CHECK(block_m(qwen(), m) == 16);
        CHECK(block_m(qwen(385, 9), m) == 16);
    }
    CHECK(block_m(qwen(384, 8), 256) == 16);
    for (const std::int64_t m : {256, 512, 1024}) {
        CHECK(block_m(qwen(385, 9), m) == 32);
    }
    CHECK(block_m(qwen(16, 4), 1024) == 128);
    const std::vector<Bucket> after = derive_fused_moe_mxmoe_gfx950(qwen(), 20);
    CHECK(after.front().max_m > 20);
    CHECK(after.back().max_m == kMxmoeDerivedEnd);
    // Each that adds by atomics has its like behind it that does not, and every M is served either way.
    for (std::size_t i = 0; i < after.size(); ++i) {
        if (after[i].constants.find("g2")->second == 0) {
            REQUIRE(i + 1 < after.size());
            kiln::tables::Constants like = after[i].constants;
            like.insert_or_assign("g2", 1);
            CHECK(after[i + 1].constants == like);
            CHECK(after[i + 1].max_m == after[i].max_m);
        }
    }
    CHECK(derive_fused_moe_mxmoe_gfx950(qwen(512, 10, 128), 64).empty());
    const auto all = fused_moe().derive(qwen(), *kiln::tables::parse_target("gfx950"));
    REQUIRE(all);
    CHECK(all->front().template_id == "fused_moe/small_m");
    CHECK(all->back().template_id == "fused_moe/mxmoe");
}
