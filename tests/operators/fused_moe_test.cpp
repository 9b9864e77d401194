// The operator fused_moe: its guards, the checks of a launch, what a launch packs, its template and the rule
// that makes constants.
#include "runtime/operators/fused_moe.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/operators/fused_moe_derivation_gfx950.hpp"
#include "runtime/operators/fused_moe_reference.hpp"
#include "runtime/operators/fused_moe_small_m.hpp"
#include "runtime/operators/operator.hpp"

using namespace kiln::operators;
using Words = std::vector<std::string>;

namespace {

Problem problem(Words words) {
    const auto parsed = parse_problem(fused_moe(), words);
    REQUIRE_MESSAGE(parsed, parsed.error().message);
    return *parsed;
}

Problem qwen(std::int64_t intermediate, const char* weights) {
    return problem({"hidden=4096", "intermediate=" + std::to_string(intermediate), "experts=513", "slots=11",
                    std::string("weights=") + weights});
}

std::vector<Bucket> derived(const Problem& asked) {
    const auto buckets = derive_fused_moe_small_m_gfx950(asked);
    REQUIRE_MESSAGE(buckets, buckets.error().message);
    return *buckets;
}

std::int64_t constant(const Bucket& bucket, const char* name) {
    return bucket.constants.find(name)->second;
}

const Bucket kBucket{
    16, "fused_moe/small_m", {{"columns", 16}, {"gate_up_waves", 4}, {"row_tiles", 1}, {"down_waves", 16}}};

Bucket with(std::int64_t max_m, const char* name, std::int64_t value) {
    Bucket bucket = kBucket;
    bucket.max_m = max_m;
    bucket.constants[name] = value;
    return bucket;
}

// Where the only fault is; "" when there is none.
std::string fault_at(const Problem& asked, const Bucket& bucket) {
    const auto faults = fused_moe_small_m_gfx950().check(asked, bucket);
    REQUIRE(faults.size() <= 1);
    return faults.empty() ? "" : faults.front().pointer;
}

}  // namespace

TEST_CASE("each guard of fused_moe declines with its own reason, and names the problem") {
    const auto reason = [](const char* word) {
        const auto judged =
            fused_moe().judge(problem({"hidden=4096", "intermediate=256", "experts=513", "slots=11", word}));
        REQUIRE(!judged);
        CHECK(judged.error().error.message.find(word) != std::string::npos);
        return judged.error().decline;
    };
    CHECK(reason("activation=gelu") == KILN_DECLINE_ACTIVATION);
    CHECK(reason("activation=swiglu_clamped") == KILN_DECLINE_ACTIVATION);
    CHECK(reason("x_type=fp16") == KILN_DECLINE_X_TYPE);
    CHECK(reason("x_quantised=1") == KILN_DECLINE_X_QUANTISED);
    CHECK(reason("x_inner_stride=2") == KILN_DECLINE_X_INNER_STRIDE);
    CHECK(reason("w_layout=row_major") == KILN_DECLINE_W_LAYOUT);
    CHECK(reason("w_scale_layout_other=1") == KILN_DECLINE_W_SCALE_LAYOUT);
    CHECK(reason("w_scale_strided=1") == KILN_DECLINE_W_SCALE_STRIDE);
    CHECK(reason("out_type=fp32") == KILN_DECLINE_OUT_TYPE);
    CHECK(reason("bias=1") == KILN_DECLINE_BIAS);
    CHECK(reason("expert_mask=1") == KILN_DECLINE_EXPERT_MASK);
    CHECK(reason("doweight_stage1=1") == KILN_DECLINE_WEIGHTED_STAGE_1);
    CHECK(reason("no_combine=1") == KILN_DECLINE_NOT_COMBINED);
    CHECK(reason("num_local_tokens=1") == KILN_DECLINE_LOCAL_TOKENS);
    CHECK(reason("weights=fp8_per_tensor") == KILN_DECLINE_W_SCALE_SHAPE);
    CHECK(reason("weights=fp8_per_row") == KILN_DECLINE_W_SCALE_SHAPE);
    for (const char* other : {"weights=mxfp8", "weights=fp8_fnuz", "weights=bf16", "weights=int4"}) {
        CHECK(reason(other) == KILN_DECLINE_W_TYPE);
    }
    CHECK(fused_moe().judge(qwen(256, "mxfp4")));
    // fp8 weights have one order.
    const std::vector<std::string> interleaved{"hidden=4096", "intermediate=256", "experts=513", "slots=11",
                                               "gate_up=interleaved"};
    CHECK(fused_moe().judge(problem(interleaved)));
    std::vector<std::string> of_fp8 = interleaved;
    of_fp8.emplace_back("weights=fp8");
    const auto judged = fused_moe().judge(problem(of_fp8));
    REQUIRE(!judged);
    CHECK(judged.error().decline == KILN_DECLINE_W_LAYOUT);
    CHECK(fused_moe_small_m_gfx950().kernel_name(problem(interleaved), kBucket) ==
          "kiln_fused_moe_mxfp4_interleaved_h4096_i256_e513_s11_m16");
    CHECK(fused_moe().judge(qwen(128, "fp8")));
}

TEST_CASE("fused_moe: dimensions that the layouts do not allow decline") {
    const auto declines = [](const char* hidden, const char* intermediate, const char* experts,
                             const char* slots, const char* weights) {
        const auto judged = fused_moe().judge(
            problem({std::string("hidden=") + hidden, std::string("intermediate=") + intermediate,
                     std::string("experts=") + experts, std::string("slots=") + slots,
                     std::string("weights=") + weights}));
        return !judged && judged.error().decline == KILN_DECLINE_DIMENSIONS;
    };
    CHECK(declines("2880", "256", "16", "4", "mxfp4"));
    CHECK(declines("0", "256", "16", "4", "mxfp4"));
    CHECK(declines("-128", "256", "16", "4", "mxfp4"));
    CHECK(declines("4096", "360", "16", "4", "mxfp4"));
    CHECK(declines("4096", "0", "16", "4", "mxfp4"));
    // A block of scales would lie across gate and up.
    CHECK(declines("4096", "192", "16", "4", "fp8"));
    CHECK_FALSE(declines("4096", "192", "16", "4", "mxfp4"));
    CHECK(declines("4096", "256", "0", "4", "mxfp4"));
    CHECK(declines("4096", "256", "1025", "4", "mxfp4"));
    CHECK_FALSE(declines("4096", "256", "1024", "16", "fp8"));
    CHECK(declines("4096", "256", "16", "0", "mxfp4"));
    CHECK(declines("4096", "256", "16", "17", "mxfp4"));
}

TEST_CASE("fused_moe: what a launch looks at") {
    const auto typed = std::get<FusedMoeProblem>(fused_moe().typed(qwen(256, "mxfp4")));
    CHECK_FALSE(typed.fp8);
    alignas(16) char memory[32];
    const auto at = [&](std::size_t offset) { return static_cast<void*>(memory + offset); };
    const auto declines = [&](auto change) {
        kiln_fused_moe_args args{};
        args.x = args.w13 = args.w13_scale = args.w2 = args.w2_scale = at(0);
        args.ldx = 4096;
        args.ids = static_cast<const std::int32_t*>(at(0));
        args.weights = static_cast<const float*>(at(0));
        args.out = at(0);
        change(args);
        return check_launch(typed, 1, args);
    };
    CHECK(declines([](auto&) {}) == KILN_OK);
    CHECK(declines([](auto& a) { a.x = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(declines([](auto& a) { a.w13 = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(declines([](auto& a) { a.w13_scale = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(declines([](auto& a) { a.w2 = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(declines([](auto& a) { a.w2_scale = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(declines([](auto& a) { a.ids = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(declines([](auto& a) { a.weights = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(declines([](auto& a) { a.out = nullptr; }) == KILN_DECLINE_NULL_POINTER);
    CHECK(declines([&](auto& a) { a.x = at(8); }) == KILN_DECLINE_X_ALIGNMENT);
    CHECK(declines([](auto& a) { a.ldx = 4088; }) == KILN_DECLINE_X_ROW_STRIDE);
    CHECK(declines([](auto& a) { a.ldx = 4100; }) == KILN_DECLINE_X_ROW_STRIDE);
    CHECK(declines([](auto& a) { a.ldx = std::int64_t{1} << 24; }) == KILN_DECLINE_X_ROW_STRIDE);
    CHECK(declines([](auto& a) { a.ldx = 4104; }) == KILN_OK);
    CHECK(declines([&](auto& a) { a.w13 = at(8); }) == KILN_DECLINE_W_ALIGNMENT);
    CHECK(declines([&](auto& a) { a.w2 = at(4); }) == KILN_DECLINE_W_ALIGNMENT);
    CHECK(declines([&](auto& a) { a.w13_scale = at(2); }) == KILN_DECLINE_W_SCALE_ALIGNMENT);
    CHECK(declines([&](auto& a) { a.w2_scale = at(1); }) == KILN_DECLINE_W_SCALE_ALIGNMENT);
    CHECK(declines([&](auto& a) { a.w2_scale = at(4); }) == KILN_OK);
    CHECK(declines([&](auto& a) { a.out = at(8); }) == KILN_DECLINE_OUT_ALIGNMENT);
    const auto misaligned = reinterpret_cast<std::uintptr_t>(at(2));
    CHECK(declines([&](auto& a) { a.ids = reinterpret_cast<const std::int32_t*>(misaligned); }) ==
          KILN_DECLINE_IDS_ALIGNMENT);
    CHECK(declines([&](auto& a) { a.weights = reinterpret_cast<const float*>(misaligned); }) ==
          KILN_DECLINE_WEIGHTS_ALIGNMENT);
    CHECK(declines([&](auto& a) { a.invalid_id = reinterpret_cast<std::int32_t*>(misaligned); }) ==
          KILN_DECLINE_FLAG_ALIGNMENT);
}

TEST_CASE("fused_moe: where the caller wants no flag, the word behind h takes it") {
    const Problem asked = qwen(256, "mxfp4");
    const auto typed = std::get<FusedMoeProblem>(fused_moe().typed(asked));
    for (const std::int64_t m : {1, 7, 16}) {
        const WorkspaceNeed need = fused_moe_small_m_gfx950().workspace(asked, kBucket, m);
        CHECK(need.zeroed == 0);
        std::vector<char> scratch(static_cast<std::size_t>(need.scratch));
        const Workspace workspace{nullptr, scratch.data()};
        kiln_fused_moe_args args{};
        args.ldx = 4104;
        std::int32_t flag = 0;
        args.invalid_id = &flag;
        FusedMoeKernargs packed = pack(typed, m, args, workspace, {}).small_m;
        CHECK(packed.flag == &flag);
        CHECK(packed.h == scratch.data());
        CHECK(packed.m == m);
        CHECK(packed.ldx == 4104);
        args.invalid_id = nullptr;
        packed = pack(typed, m, args, workspace, {}).small_m;
        const auto* word = reinterpret_cast<const char*>(packed.flag);
        CHECK(word - scratch.data() == m * 11 * 256 * 2);
        CHECK(word + sizeof(std::int32_t) <= scratch.data() + scratch.size());
    }
}

TEST_CASE("fused_moe/small_m: two kernels, and how their grids follow the tokens") {
    const Problem asked = qwen(256, "mxfp4");
    const KernelTemplate& source = fused_moe_small_m_gfx950();
    CHECK(source.kernel_name(asked, kBucket) == "kiln_fused_moe_mxfp4_h4096_i256_e513_s11_m16");
    CHECK(source.kernel_name(qwen(128, "fp8"), kBucket) == "kiln_fused_moe_fp8_h4096_i128_e513_s11_m16");
    const auto kernels = source.kernels(asked, kBucket);
    REQUIRE(kernels.size() == 2);
    CHECK(kernels[0].symbol == "kiln_fused_moe_mxfp4_h4096_i256_e513_s11_m16_gate_up");
    CHECK(kernels[1].symbol == "kiln_fused_moe_mxfp4_h4096_i256_e513_s11_m16_down");
    CHECK(kernels[0].shape.block.x == 256);
    CHECK(kernels[1].shape.block.x == 1024);
    CHECK(kernels[0].grid_x(1) == 16 * 11);
    CHECK(kernels[0].grid_x(16) == 16 * 11 * 16);
    CHECK(kernels[1].grid_x(1) == 256);
    CHECK(kernels[1].grid_x(16) == 256);
    // Never more experts than there are.
    const Problem few = problem({"hidden=4096", "intermediate=256", "experts=16", "slots=11"});
    CHECK(source.kernels(few, kBucket)[0].grid_x(1) == 16 * 11);
    CHECK(source.kernels(few, kBucket)[0].grid_x(2) == 16 * 16);
    // One token: all slots' columns are one row.
    CHECK(source.kernels(asked, with(1, "columns", 11))[0].grid_x(1) == 256);
    const std::vector<std::pair<std::string, std::int64_t>> expected{
        {"kHidden", 4096},   {"kIntermediate", 256}, {"kExperts", 513}, {"kSlots", 11},
        {"kFp8", 0},         {"kInterleaved", 0},    {"kMaxM", 16},     {"kColumns", 16},
        {"kGateUpWaves", 4}, {"kRowTiles", 1},       {"kDownWaves", 16}};
    CHECK(source.constants(asked, kBucket) == expected);
}

TEST_CASE("fused_moe/small_m: what constants must satisfy") {
    const Problem mxfp4 = qwen(256, "mxfp4");
    const Problem fp8 = qwen(256, "fp8");
    CHECK(fault_at(mxfp4, kBucket).empty());
    CHECK(fault_at(fp8, kBucket).empty());
    CHECK(fault_at(mxfp4, with(16, "columns", 12)) == "/constants/columns");
    CHECK(fault_at(mxfp4, with(1, "columns", 12)).empty());
    CHECK(fault_at(mxfp4, with(1, "columns", 17)) == "/constants/columns");
    CHECK(fault_at(mxfp4, with(1, "columns", 0)) == "/constants/columns");
    CHECK(fault_at(fp8, with(1, "columns", 12)) == "/constants/columns");
    CHECK(fault_at(fp8, with(1, "columns", 8)).empty());
    // Over all experts by 32-bit offsets.
    const Problem large = problem({"hidden=7168", "intermediate=2048", "experts=385", "slots=9"});
    CHECK(fault_at(large, with(1, "columns", 12)) == "/constants/columns");
    CHECK(fault_at(large, with(1, "columns", 4)) == "/constants/columns");
    CHECK(fault_at(large, with(1, "columns", 16)).empty());
    CHECK(fault_at(mxfp4, with(16, "gate_up_waves", 3)) == "/constants/gate_up_waves");
    CHECK(fault_at(mxfp4, with(16, "gate_up_waves", 0)) == "/constants/gate_up_waves");
    CHECK(fault_at(mxfp4, with(16, "gate_up_waves", 32)) == "/constants/gate_up_waves");
    CHECK(fault_at(mxfp4, with(16, "row_tiles", 3)) == "/constants/row_tiles");
    CHECK(fault_at(mxfp4, with(16, "row_tiles", 9)) == "/constants/row_tiles");
    CHECK(fault_at(mxfp4, with(64, "row_tiles", 4)) == "/constants/row_tiles");  // 187 KiB of LDS
    CHECK(fault_at(mxfp4, with(16, "down_waves", 17)) == "/constants/down_waves");
    CHECK(fault_at(mxfp4, with(16, "down_waves", 0)) == "/constants/down_waves");
    CHECK(fault_at(mxfp4, with(64, "down_waves", 8)).empty());
    CHECK(fault_at(mxfp4, with(65, "down_waves", 8)) == "/max_m");
    // 704 pairs of token and slot.
    const Problem sixteen = problem({"hidden=4096", "intermediate=256", "experts=513", "slots=16"});
    CHECK(fault_at(sixteen, with(44, "down_waves", 8)).empty());
    CHECK(fault_at(sixteen, with(45, "down_waves", 8)) == "/max_m");
    CHECK(fault_at(mxfp4, with(16, "tiles", 1)) == "/constants/tiles");
    Bucket lacking = kBucket;
    lacking.constants.erase("columns");
    CHECK(fault_at(mxfp4, lacking) == "/constants");
    const Problem endless = problem({"hidden=4294967296", "intermediate=4294967296", "experts=2", "slots=2"});
    CHECK(fault_at(endless, kBucket) == "/constants");
    // 4 GiB an expert, less what a lane may be beyond.
    const auto of_hidden = [](std::int64_t hidden, const char* weights) {
        return problem({"hidden=" + std::to_string(hidden), "intermediate=65536", "experts=2", "slots=1",
                        std::string("weights=") + weights});
    };
    CHECK(fault_at(of_hidden(65024, "mxfp4"), kBucket).empty());
    CHECK(fault_at(of_hidden(65536, "mxfp4"), kBucket) == "/constants");
    CHECK(fault_at(of_hidden(32256, "fp8"), kBucket).empty());
    CHECK(fault_at(of_hidden(32768, "fp8"), kBucket) == "/constants");
    // h below 2 GiB.
    const Problem wide = problem({"hidden=128", "intermediate=16777216", "experts=64", "slots=16"});
    CHECK(fault_at(wide, with(3, "gate_up_waves", 1)).empty());
    CHECK(fault_at(wide, with(4, "gate_up_waves", 1)) == "/max_m");
}

TEST_CASE("fused_moe derivation: the published caps") {
    struct Published {
        const char* weights;
        std::int64_t intermediate, cap;
    };
    for (const auto& [weights, intermediate, cap] :
         {Published{"mxfp4", 256, 40}, {"mxfp4", 512, 20}, {"fp8", 256, 20}, {"fp8", 128, 48}}) {
        CAPTURE(intermediate);
        const auto buckets = derived(qwen(intermediate, weights));
        CHECK(buckets.front().max_m == 1);
        CHECK(buckets.back().max_m == cap);
        for (const Bucket& bucket : buckets) {
            CHECK(bucket.budget.waves_per_simd == 2);
            CHECK(bucket.budget.lds_bytes == fused_moe_small_m_lds(qwen(intermediate, weights), bucket));
            CHECK(*bucket.budget.lds_bytes <= 64 * 1024);  // two work-groups fit
        }
    }
    // Between and beyond them.
    CHECK(derived(qwen(64, "mxfp4")).back().max_m == 64);
    CHECK(derived(qwen(1024, "mxfp4")).back().max_m == 10);
    CHECK(derived(qwen(2048, "fp8")).back().max_m == 2);
    CHECK(derived(qwen(16384, "fp8")).back().max_m == 1);
    const Problem sixteen = problem({"hidden=4096", "intermediate=64", "experts=513", "slots=16"});
    CHECK(derived(sixteen).back().max_m == 44);
}

TEST_CASE("fused_moe derivation: one token has a work-group for each compute unit") {
    CHECK(constant(derived(qwen(256, "mxfp4")).front(), "columns") == 11);
    CHECK(constant(derived(qwen(512, "mxfp4")).front(), "columns") == 16);
    CHECK(constant(derived(qwen(256, "fp8")).front(), "columns") == 8);
    for (const char* weights : {"mxfp4", "fp8"}) {
        for (const std::int64_t intermediate : {256, 512, 1024}) {
            const Problem asked = qwen(intermediate, weights);
            const Bucket one = derived(asked).front();
            CHECK(fused_moe_small_m_gfx950().kernels(asked, one)[0].grid_x(1) >= 256);
        }
    }
    // All experts' weights are 5.7 GiB: no columns of two experts.
    const Problem large = problem({"hidden=7168", "intermediate=2048", "experts=385", "slots=9"});
    CHECK(constant(derived(large).front(), "columns") == 16);
    const Problem narrow = problem({"hidden=7168", "intermediate=1984", "experts=385", "slots=1"});
    CHECK(constant(derived(narrow).front(), "columns") == 8);
}

TEST_CASE("fused_moe derivation: legal for every problem that is not too large") {
    for (const std::int64_t hidden : {128, 384, 2048, 3072, 7168}) {
        for (const std::int64_t intermediate : {64, 128, 192, 768, 3072}) {
            for (const std::int64_t experts : {1, 16, 1024}) {
                for (const std::int64_t slots : {1, 4, 16}) {
                    for (const char* weights : {"mxfp4", "fp8"}) {
                        Problem asked =
                            problem({"hidden=" + std::to_string(hidden),
                                     "intermediate=" + std::to_string(intermediate),
                                     "experts=" + std::to_string(experts), "slots=" + std::to_string(slots),
                                     std::string("weights=") + weights});
                        if (!fused_moe().judge(asked)) {
                            continue;
                        }
                        kiln::tables::Row row;
                        row.operator_name = "fused_moe";
                        row.problem = asked;
                        row.target = *kiln::tables::parse_target("gfx950");
                        row.buckets = derived(asked);
                        REQUIRE(check_row(row).empty());
                        CHECK(row.buckets.front().max_m == 1);
                    }
                }
            }
        }
    }
    const auto too_large = derive_fused_moe_small_m_gfx950(
        problem({"hidden=4294967296", "intermediate=128", "experts=2", "slots=2"}));
    REQUIRE(!too_large);
    CHECK(!derive_fused_moe_small_m_gfx950(
        problem({"hidden=128", "intermediate=9223372036854775680", "experts=2", "slots=16"})));
    CHECK(too_large.error().message.find("4 GiB") != std::string::npos);
    const auto elsewhere = fused_moe().derive(qwen(256, "mxfp4"), *kiln::tables::parse_target("sm_90a"));
    REQUIRE(!elsewhere);
    CHECK(elsewhere.error().code == kiln::ErrorCode::not_found);
}
