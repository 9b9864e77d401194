// `moe_sort` on the simulated gfx950, through the whole service: which of its templates the shipped rows
// choose, what a trial finds of each, and what it finds of one that was broken.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "runtime/operators/moe_sort.hpp"
#include "runtime/service/trial.hpp"
#include "tests/service/simulator.hpp"

using namespace kiln::service;
using kiln::Result;
using kiln::operators::moe_sort;
using kiln::test::well;

namespace {

constexpr std::uint64_t kSeed = 20260101;

std::unique_ptr<Service> open_simulator(const kiln::test::Scratch& scratch, bool own_kernels = false) {
    setenv("KILN_CACHE_DIR", scratch.cache().c_str(), 1);  // the look-alike's listings go there too
    Overrides overrides = kiln::test::overrides_in(scratch);
    overrides.device = "sim";
    if (own_kernels) {
        overrides.kernel_path = scratch.kernels().string();
    }
    auto settings = read_settings(overrides, process_environment());
    REQUIRE_MESSAGE(settings, settings.error().message);
    settings->driver.sim_library = KILN_SIM_LIBRARY;
    return well(Service::open(*std::move(settings)));
}

std::shared_ptr<const Plan> prepare(Service& service, const std::vector<std::string>& words) {
    const auto problem = well(kiln::operators::parse_problem(moe_sort(), words));
    auto plan = service.prepare(0, moe_sort(), problem);
    REQUIRE_MESSAGE(plan, plan.error().error.message);
    return *std::move(plan);
}

// "compact", "distributed" or "general".
std::string template_for(const Plan& plan, std::int64_t m) {
    const PlanBucket* bucket = plan.bucket_for(m);
    REQUIRE(bucket != nullptr);
    std::string name = bucket->kernel_name.substr(std::string("kiln_moe_sort_").size());
    return name.substr(0, name.find('_'));
}

void check(const std::shared_ptr<const Plan>& plan, const std::vector<std::int64_t>& ms) {
    INFO("seed ", kSeed);
    const auto trial = well(Trial::create(plan, ms.back(), kSeed));
    for (const std::int64_t m : ms) {
        const TrialResult result = well(trial->run(m));
        CHECK_MESSAGE(result.passed,
                      "M = " << m << " (" << result.bucket->kernel_name << "): " << result.remark);
        CHECK(result.error == 0);
        CHECK(result.replayed);
    }
}

}  // namespace

TEST_CASE("moe_sort: one plan, every M around the ends of its buckets") {
    const kiln::test::Scratch scratch;
    const auto service = open_simulator(scratch);
    SUBCASE("513 experts: compact, then general") {
        const auto plan =
            prepare(*service, {"experts=513", "slots=11", "block_m=32", "quant=mxfp8", "hidden=2048"});
        CHECK(template_for(*plan, 5) == "compact");
        CHECK(template_for(*plan, 6) == "general");
        CHECK(plan->max_m() == kiln::operators::kMoeSortMostTokens);
        check(plan, {1, 2, 3, 4, 5, 6, 7, 16, 23, 100});
    }
    SUBCASE("256 experts: all three") {
        const auto plan = prepare(*service, {"experts=256", "slots=8", "block_m=16", "hidden=3072"});
        CHECK(template_for(*plan, 4) == "compact");
        CHECK(template_for(*plan, 5) == "distributed");
        CHECK(template_for(*plan, 32) == "distributed");
        CHECK(template_for(*plan, 33) == "general");
        check(plan, {1, 2, 3, 4, 5, 6, 31, 32, 33, 70});
    }
}

TEST_CASE("moe_sort: the gate at 256 experts is a row that anyone can replace") {
    const kiln::test::Scratch scratch;
    const std::string table = scratch
                                  .write("mine.json", R"({"schema": 1, "rows": [{"operator": "moe_sort",
        "problem": {"experts": 513, "slots": 11, "block_m": "*", "quant": "*", "hidden": "*"}, "target": "gfx950",
        "buckets": [{"max_pairs": 256, "template": "moe_sort/distributed", "constants": {}},
                    {"max_m": 16777215, "template": "moe_sort/general", "constants": {}}],
        "provenance": {"kind": "untuned"}}]})")
                                  .string();
    Overrides overrides = kiln::test::overrides_in(scratch);
    overrides.shapes_path = table;
    const auto service = kiln::test::open(overrides);
    const auto problem = well(kiln::operators::parse_problem(
        moe_sort(), std::vector<std::string>{"experts=513", "slots=11", "block_m=32"}));
    const auto selected = service->select(moe_sort(), problem, service->settings().target);
    REQUIRE(selected.has_value());
    CHECK((*selected)->buckets.size() == 2);
    CHECK((*selected)->buckets[0].template_id == "moe_sort/distributed");
    CHECK((*selected)->buckets[0].max_m == 23);
}

TEST_CASE("moe_sort: a trial finds what a broken kernel does") {
    const kiln::test::Scratch scratch;
    scratch.copy_kernels();
    struct Damage {
        const char* file;
        const char* from;
        const char* to;
        const char* remark;
    };
    const Damage damages[] = {
        // Rows past the last block.
        {"moe_sort/compact.gfx950.hip", "if (quad < quads)", "if (quad < quads + 1)", "sorted_ids["},
        // The order of the pairs of an expert.
        {"moe_sort/general.gfx950.hip", "row = next + below;", "row = next + count_lanes(same) - 1 - below;",
         "sorted_ids["},
        // The floor of the largest magnitude.
        {"device/gfx950/mx_quantise.h", "bits_as<u32>(kAmaxFloor)", "0U", "q_scale["},
    };
    for (const Damage& damage : damages) {
        INFO(std::string(damage.from));
        const std::string name = std::string("kernels/") + damage.file;
        const std::string whole = kiln::test::Scratch::read(scratch.folder() / name);
        std::string broken = whole;
        REQUIRE(broken.find(damage.from) != std::string::npos);
        broken.replace(broken.find(damage.from), std::string(damage.from).size(), damage.to);
        scratch.write(name, broken);
        const auto service = open_simulator(scratch, true);
        const auto plan =
            prepare(*service, {"experts=16", "slots=8", "block_m=16", "quant=mxfp8", "hidden=2048"});
        const auto trial = well(Trial::create(plan, 40, kSeed));
        std::string remarks;
        for (const std::int64_t m : {1, 4, 40}) {
            const Result<TrialResult> result = trial->run(m);
            remarks += !result ? result.error().message : result->passed ? "" : result->remark;
        }
        CHECK_MESSAGE(remarks.find(damage.remark) != std::string::npos, remarks);
        scratch.write(name, whole);
    }
}
