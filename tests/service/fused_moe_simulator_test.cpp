// `fused_moe` on the simulated gfx950, through the whole service: shipped tables and templates, the real
// compiler, the HIP adapter over the look-alike.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "kiln/kiln.h"
#include "runtime/operators/fused_moe_reference.hpp"
#include "runtime/service/trial.hpp"
#include "tests/service/fused_moe_arrays.hpp"

using namespace kiln::service;
using kiln::operators::FusedMoeArrays;
using kiln::operators::FusedMoeProblem;
using kiln::test::FusedMoeDeviceArrays;
using kiln::test::simulator;
using kiln::test::well;

namespace {

constexpr std::uint64_t kSeed = 20261130;

std::shared_ptr<const Plan> prepare(std::int64_t intermediate, const char* weights) {
    const auto& op = kiln::operators::fused_moe();
    const auto problem = well(kiln::operators::complete(op, {{"hidden", std::int64_t{4096}},
                                                             {"intermediate", intermediate},
                                                             {"experts", std::int64_t{513}},
                                                             {"slots", std::int64_t{11}},
                                                             {"weights", std::string(weights)}}));
    auto plan = simulator().prepare(0, op, problem);
    REQUIRE_MESSAGE(plan, plan.error().error.message);
    return *std::move(plan);
}

}  // namespace

TEST_CASE("fused_moe: the problems of Qwen3.5-397B are within their bound, up to and over the crossover") {
    struct Case {
        const char* weights;
        std::int64_t intermediate, max_m;
        std::vector<std::int64_t> tokens;
    };
    for (const auto& [weights, intermediate, max_m, tokens] :
         {Case{"mxfp4", 256, 1024, {1, 3, 16, 40, 41}}, Case{"fp8", 256, 20, {1, 9}},
          Case{"fp8", 128, 48, {1, 4}}}) {
        CAPTURE(weights);
        INFO("seed ", kSeed);
        const auto plan = prepare(intermediate, weights);
        CHECK(plan->max_m() == max_m);
        const auto trial = well(Trial::create(plan, tokens.back(), kSeed));
        for (const std::int64_t m : tokens) {
            const TrialResult result = well(trial->run(m));
            CHECK_MESSAGE(result.passed,
                          "M = " << m << " (" << result.bucket->kernel_name << "): " << result.remark);
            CHECK(result.bucket->kernel_name.starts_with("kiln_fused_moe_mxmoe") == (m > 40));
            CHECK(result.replayed);
        }
    }
}

TEST_CASE("fused_moe: a launch above the last bucket declines, and so does one without a workspace") {
    const auto plan = prepare(256, "mxfp4");
    const FusedMoeArrays host =
        kiln::operators::make_fused_moe_case(std::get<FusedMoeProblem>(plan->typed()), 1, kSeed);
    const FusedMoeDeviceArrays arrays = FusedMoeDeviceArrays::make(*plan, host);
    kiln_fused_moe_args args = arrays.args();
    const auto run = [&](std::int64_t m) { return launch<FusedMoeProblem>(*plan, nullptr, m, args); };
    CHECK(run(1025) == KILN_DECLINE_M_TOO_LARGE);
    // Nothing sorts fp8 weights' tokens.
    const auto fp8 = prepare(256, "fp8");
    CHECK(launch<FusedMoeProblem>(*fp8, nullptr, 21, args) == KILN_DECLINE_M_TOO_LARGE);
    CHECK(run(0) == KILN_OK);
    CHECK(run(-1) == KILN_DECLINE_M_NEGATIVE);
    args.workspace = nullptr;
    CHECK(run(1) == KILN_DECLINE_NULL_POINTER);
    args.workspace = static_cast<std::byte*>(arrays.workspace.get()) + 128;
    CHECK(run(1) == KILN_DECLINE_WORKSPACE_ALIGNMENT);
}

TEST_CASE("fused_moe: the flag is raised by an invalid id alone, never lowered, and may be left out") {
    const auto plan = prepare(256, "mxfp4");
    FusedMoeArrays host =
        kiln::operators::make_fused_moe_case(std::get<FusedMoeProblem>(plan->typed()), 2, kSeed);
    // Padding raises nothing.
    host.ids[3] = -1;
    const std::vector<std::uint16_t> reference = kiln::operators::fused_moe_reference(host);
    const auto run = [&](const FusedMoeArrays& given, std::int32_t before, bool wanted) {
        const FusedMoeDeviceArrays arrays = FusedMoeDeviceArrays::make(*plan, given);
        const std::vector<std::int32_t> flag{before};
        well(plan->device().copy_to_device(arrays.flag.get(), std::as_bytes(std::span(flag)), nullptr));
        kiln_fused_moe_args args = arrays.args();
        if (!wanted) {
            args.invalid_id = nullptr;
        }
        REQUIRE(launch<FusedMoeProblem>(*plan, nullptr, given.m, args) == KILN_OK);
        const auto out = FusedMoeDeviceArrays::read<std::uint16_t>(*plan, arrays.out, reference.size());
        CHECK(kiln::operators::compare_fused_moe(out, reference, given.m, 4096).passed());
        return FusedMoeDeviceArrays::read<std::int32_t>(*plan, arrays.flag, 1).front();
    };
    CHECK(run(host, 0, true) == 0);
    CHECK(run(host, 1, true) == 1);
    // What padding stood for, an invalid id stands for too.
    for (const std::int32_t invalid : {513, -2, 0x7fffffff}) {
        host.ids[3] = invalid;
        CHECK(run(host, 0, true) == 1);
        CHECK(run(host, 0, false) == 0);
    }
}

TEST_CASE("fused_moe: stores that reach other dies as late as they may change nothing") {
    const auto plan = prepare(256, "mxfp4");
    const auto trial = well(Trial::create(plan, 5, kSeed));
    const TrialResult early = well(trial->run(5));
    CHECK_MESSAGE(early.passed, early.remark);
    for (const char* order : {"descending", "interleave:3"}) {
        CAPTURE(order);
        well(plan->device().set_rules({.order = order, .scopes = "late"}));
        const TrialResult late = well(trial->run(5));
        CHECK_MESSAGE(late.passed, late.remark);
        CHECK(late.error == early.error);
    }
    well(plan->device().set_rules({}));
}
