// One operator, several kernels: a plan whose buckets are of different templates, on the simulated gfx950,
// with a table of the test's own and one set of arrays for all of them.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/operators/fused_moe_mxmoe.hpp"
#include "runtime/operators/mxmoe_bucket.hpp"
#include "runtime/operators/mxmoe_reference.hpp"
#include "runtime/service/trial.hpp"
#include "runtime/tune/candidates.hpp"
#include "tests/service/fused_moe_arrays.hpp"
#include "tests/service/mxmoe_rows.hpp"

using namespace kiln::service;
using kiln::operators::fused_moe;
using kiln::operators::FusedMoeArrays;
using kiln::operators::FusedMoeProblem;
using kiln::operators::MxmoeBucket;
using kiln::operators::MxmoeSum;
using kiln::test::FusedMoeDeviceArrays;
using kiln::test::mxmoe_bucket;
using kiln::test::well;

namespace {

constexpr std::uint64_t kSeed = 20261130;
constexpr kiln::test::MoeShape kShape{512, 256, 16, 4};

// One cache for all cases, so that each kernel is compiled once.
const kiln::test::Scratch& shared() {
    static const kiln::test::Scratch folder;
    return folder;
}

// Its table is replaced by edit().
struct Engine {
    kiln::test::Scratch scratch;
    std::unique_ptr<Service> service;

    Engine() {
        edit(kiln::test::small_m_bucket(4) + ",\n" + mxmoe_bucket(16, 16, 1, 1, 0, 0) + ",\n" +
             mxmoe_bucket(16, 32, 0, 1, 1, 0) + ",\n" + mxmoe_bucket(40, 128, 0, 0, 2, 0));
        setenv("KILN_CACHE_DIR", shared().cache().c_str(), 1);  // the look-alike's listings go there too
        Overrides overrides = kiln::test::overrides_in(shared());
        overrides.device = "sim";
        overrides.shapes_path = (scratch.folder() / "mine.json").string();
        auto settings = well(read_settings(overrides, process_environment()));
        settings.driver.sim_library = KILN_SIM_LIBRARY;
        service = well(Service::open(std::move(settings)));
    }
    void edit(const std::string& buckets) const {
        scratch.write("mine.json", kiln::test::moe_table(kiln::test::moe_row(kShape, buckets)));
    }
    [[nodiscard]] static Problem problem(std::int64_t deterministic) {
        return well(kiln::operators::complete(fused_moe(), {{"hidden", kShape.hidden},
                                                            {"intermediate", kShape.intermediate},
                                                            {"experts", kShape.experts},
                                                            {"slots", kShape.slots},
                                                            {"deterministic", deterministic}}));
    }
    [[nodiscard]] std::shared_ptr<const Plan> prepare(std::int64_t deterministic = 0) const {
        auto plan = service->prepare(0, fused_moe(), problem(deterministic));
        REQUIRE_MESSAGE(plan, plan.error().error.message);
        return *std::move(plan);
    }
};

FusedMoeArrays make_case(std::int64_t m) {
    return kiln::operators::make_fused_moe_case(
        {kShape.hidden, kShape.intermediate, kShape.experts, kShape.slots, false, false}, m, kSeed);
}

const MxmoeBucket* mxmoe_of(const Plan& plan, std::int64_t m) {
    return std::get_if<MxmoeBucket>(&plan.bucket_for(m)->typed);
}

std::vector<std::uint16_t> launched(const Plan& plan, const FusedMoeDeviceArrays& arrays, std::int64_t m) {
    well(plan.device().make_current());
    // What a launch leaves out shows.
    well(plan.device().fill(arrays.out.get(), std::byte{0xff},
                            static_cast<std::size_t>(m * kShape.hidden * 2), nullptr));
    REQUIRE(launch<FusedMoeProblem>(plan, nullptr, m, arrays.args()) == KILN_OK);
    return FusedMoeDeviceArrays::read<std::uint16_t>(plan, arrays.out,
                                                     static_cast<std::size_t>(m * kShape.hidden));
}

void check_sanitized(const Plan& plan, const TrialResult& result, std::int64_t m) {
    CHECK_MESSAGE(result.passed,
                  "M = " << m << " (" << plan.bucket_for(m)->kernel_name << "): " << result.remark);
}

}  // namespace

TEST_CASE_FIXTURE(Engine,
                  "mxmoe: a plan holds kernels of both templates and switches by M in one workspace") {
    INFO("seed ", kSeed);
    const auto plan = prepare();
    REQUIRE(plan->buckets().size() == 3);
    CHECK(mxmoe_of(*plan, 4) == nullptr);
    REQUIRE(mxmoe_of(*plan, 5) != nullptr);
    CHECK(mxmoe_of(*plan, 16)->sum == MxmoeSum::atomic);
    CHECK(mxmoe_of(*plan, 17)->sum == MxmoeSum::fused);
    for (std::int64_t m = 1; m <= 40; ++m) {
        CHECK(plan->workspace_bytes(m) <= plan->workspace_bytes(40));
    }

    // The same weights and workspace for all, in an order in which each template follows every other.
    const FusedMoeArrays host = make_case(40);
    const auto arrays = FusedMoeDeviceArrays::make(*plan, host);
    const auto plain = kiln::operators::fused_moe_reference(host, 4);
    const auto quantised = kiln::operators::mxmoe_reference(host);
    for (const std::int64_t m : {40, 3, 16, 40, 5, 4, 33, 1}) {
        CAPTURE(m);
        const auto out = launched(*plan, arrays, m);
        CHECK((m <= 4 ? kiln::operators::compare_fused_moe(out, plain, m, kShape.hidden).passed()
                      : kiln::operators::compare_mxmoe(out, quantised, m, kShape.hidden).passed()));
    }
}

TEST_CASE_FIXTURE(Engine, "mxmoe: who demands the same bits is served by the next bucket, and gets them") {
    INFO("seed ", kSeed);
    const auto plan = prepare(1);
    REQUIRE(plan->buckets().size() == 3);
    REQUIRE(mxmoe_of(*plan, 5) != nullptr);
    CHECK(mxmoe_of(*plan, 5)->sum == MxmoeSum::combined);
    CHECK(plan->bucket_for(5)->is_deterministic);
    const auto explanation = service->explain(fused_moe(), problem(1), 16, service->settings().target);
    REQUIRE(explanation.passed_over.size() == 1);
    CHECK(explanation.passed_over.front().first == 1);
    CHECK(explanation.row->buckets[1].constants.find("g2")->second == 0);

    const FusedMoeArrays host = make_case(33);
    const auto arrays = FusedMoeDeviceArrays::make(*plan, host);
    for (const std::int64_t m : {16, 33}) {
        CAPTURE(m);
        const auto first = launched(*plan, arrays, m);
        // Also where work-groups take turns in another order.
        for (const char* order : {"ascending", "descending", "interleave:5"}) {
            well(plan->device().set_rules({.order = order}));
            CHECK(launched(*plan, arrays, m) == first);
        }
        well(plan->device().set_rules({}));
    }

    // A row that has no such bucket declines the problem, and names why.
    edit(mxmoe_bucket(16, 16, 1, 1, 0, 0));
    well(service->reload());
    const auto declined = service->prepare(0, fused_moe(), problem(1));
    REQUIRE_FALSE(declined);
    CHECK(declined.error().decline == KILN_DECLINE_NOT_DETERMINISTIC);
}

TEST_CASE_FIXTURE(
    Engine, "mxmoe: pipelines hold under every order and both extremes of visibility, with every check") {
    for (const std::int64_t deterministic : {0, 1}) {
        const auto plan = prepare(deterministic);
        const auto trial = well(Trial::create(plan, 17, kSeed));
        for (const std::int64_t m : {5, 17}) {
            if (m == 5 || deterministic == 1) {
                check_sanitized(*plan, well(trial->run(m, all_rules(1))), m);
            }
        }
        well(plan->device().set_rules({}));
    }
}

TEST_CASE_FIXTURE(Engine, "mxmoe: so does every couple that the tuner tries" * doctest::skip()) {
    const auto couples =
        kiln::tune::combinations(kiln::operators::fused_moe_mxmoe_gfx950().space(problem(0), 16));
    CHECK(couples.size() == 14);
    for (const auto& constants : couples) {
        const auto value = [&](const char* name) { return constants.find(name)->second; };
        edit(mxmoe_bucket(16, value("block_m"), value("f16in"), value("g1_nt"), value("g2"), value("g2_nt")));
        well(service->reload());
        const auto plan = prepare();
        const auto trial = well(Trial::create(plan, 5, kSeed));
        check_sanitized(*plan, well(trial->run(5, all_rules(1))), 5);
    }
}
