// What router/one_launch computes on the simulator, through the whole service: shipped problems and unusual
// ones, every M, inputs that reach into the corners; and what it costs against a public kernel for the same
// operator.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/formats/bf16.hpp"
#include "runtime/operators/router_reference.hpp"
#include "runtime/service/router_trial.hpp"
#include "runtime/service/trial.hpp"
#include "simulated_service.hpp"

using namespace kiln;
using namespace kiln::kernels_test;
using operators::RouterArrays;
using service::Plan;
using service::Trial;
using service::TrialResult;

namespace {

// A problem, and the only bucket of its row.
struct Layout {
    std::int64_t hidden, experts, top_k, shared;
    std::int64_t max_m, rows, waves;
};
const std::vector<Layout> kLayouts = {
    // The smallest there is: one expert, one piece, one wave.
    {8, 1, 1, 0, 8, 1, 1},
    // Every expert chosen; columns 16 and 17.
    {8, 16, 16, 0, 8, 1, 1},
    {72, 16, 16, 1, 8, 3, 2},
    // Columns 4 and 5; experts that pieces of eight do not divide, rows that do not divide the experts.
    {264, 128, 4, 0, 8, 1, 4},
    {520, 129, 4, 1, 8, 2, 3},
    // Columns 9, 10 and 11; one piece of a lane, and more than one.
    {1024, 256, 8, 1, 8, 1, 2},
    {2056, 257, 10, 0, 8, 2, 8},
    {1536, 384, 8, 1, 8, 2, 3},
    // More experts than a wave takes in one piece a lane.
    {328, 513, 10, 1, 8, 2, 4},
    {512, 1024, 16, 1, 8, 4, 1},
    {128, 1019, 16, 0, 16, 4, 16},
    // As many sums as lanes; fewer work-groups than counters.
    {96, 21, 5, 1, 8, 8, 2},
};

std::string row_of(const Layout& layout) {
    const auto text = [](std::int64_t value) { return std::to_string(value); };
    return R"({"operator": "router", "problem": {"hidden": )" + text(layout.hidden) + R"(, "experts": )" +
           text(layout.experts) + R"(, "top_k": )" + text(layout.top_k) + R"(, "shared": )" +
           text(layout.shared) +
           R"(}, "target": "gfx950", "provenance": {"kind": "untuned"}, "buckets": [{"max_m": )" +
           text(layout.max_m) + R"(, "template": "router/one_launch", "constants": {"rows": )" +
           text(layout.rows) + R"(, "waves": )" + text(layout.waves) + "}}]}";
}

service::Service& simulator() {
    static service::Service& opened = [&]() -> service::Service& {
        std::vector<std::string> rows;
        for (const Layout& layout : kLayouts) {
            rows.push_back(row_of(layout));
        }
        return open_simulated_service(rows);
    }();
    return opened;
}

std::shared_ptr<const Plan> prepare(std::int64_t hidden, std::int64_t experts, std::int64_t top_k,
                                    std::int64_t shared) {
    return prepare_on(simulator(), operators::router(),
                      {{"hidden", hidden}, {"experts", experts}, {"top_k", top_k}, {"shared", shared}});
}

TrialResult run(Trial& trial, std::int64_t m) {
    auto result = trial.run(m);
    REQUIRE_MESSAGE(result, result.error().message);
    CHECK_MESSAGE(result->passed, "M = " << m << " (" << result->bucket->kernel_name
                                         << "): " << result->remark << ", error " << result->error);
    CHECK(result->replayed);
    return *std::move(result);
}

std::unique_ptr<Trial> trial_of(const std::shared_ptr<const Plan>& plan,
                                std::unique_ptr<service::TrialCase> arrays) {
    auto trial = Trial::create(plan, std::move(arrays));
    REQUIRE_MESSAGE(trial, trial.error().message);
    return *std::move(trial);
}

// Every element of the tokens, and of the gates, the same.
RouterArrays filled(RouterArrays arrays, float x, float gate) {
    std::ranges::fill(arrays.x, formats::float_to_bf16(x));
    std::ranges::fill(arrays.gate, formats::float_to_bf16(gate));
    std::ranges::fill(arrays.shared_gate, formats::float_to_bf16(gate));
    return arrays;
}

}  // namespace

TEST_CASE("router: every layout of the work chooses as the reference does, at every M") {
    for (std::size_t i = 0; i < kLayouts.size(); ++i) {
        const Layout& layout = kLayouts[i];
        const std::uint64_t seed = 100 + i;
        CAPTURE(row_of(layout));
        CAPTURE(seed);
        const auto plan = prepare(layout.hidden, layout.experts, layout.top_k, layout.shared);
        auto trial = Trial::create(plan, layout.max_m, seed);
        REQUIRE_MESSAGE(trial, trial.error().message);
        for (std::int64_t m = 1; m <= layout.max_m; ++m) {
            const TrialResult result = run(**trial, m);
            const std::int64_t rows = layout.experts + layout.shared;
            CHECK(result.counts->work_groups ==
                  static_cast<std::uint64_t>((rows + layout.rows - 1) / layout.rows));
        }
    }
}

TEST_CASE("router: all logits equal, zeros, infinities of one sign and NaN choose by id") {
    const auto plan = prepare(1024, 256, 8, 1);
    const RouterArrays arrays = operators::make_router_case(8, 1024, 256, 8, 1, 5);
    for (const auto& [x, gate] : {std::pair{1.5F, 0.25F},
                                  {0.0F, 1.0F},
                                  {-0.0F, 1.0F},
                                  {3e38F, 3e38F},
                                  {3e38F, -3e38F},
                                  {__builtin_nanf(""), 1.0F}}) {
        CAPTURE(x);
        CAPTURE(gate);
        const auto trial = trial_of(plan, service::make_trial_case(filled(arrays, x, gate)));
        run(*trial, 8);
        run(*trial, 1);
    }
}

TEST_CASE("router: one expert's NaN is chosen last, and one's infinity first or last, among finite logits") {
    const auto plan = prepare(1024, 256, 8, 1);
    // NaN of either sign, then infinities of either.
    for (const auto& [first, second] :
         {std::pair<std::uint16_t, std::uint16_t>{0x7fc0, 0xffc0}, {0x7f80, 0xff80}}) {
        RouterArrays arrays = operators::make_router_case(8, 1024, 256, 8, 1, 6);
        arrays.gate[static_cast<std::size_t>(17 * arrays.hidden + 500)] = first;
        arrays.gate[static_cast<std::size_t>(200 * arrays.hidden + 500)] = second;
        const operators::RouterResults wanted = operators::router_reference(arrays);
        CHECK(std::isnan(wanted.weights[0]));
        const auto chosen = std::span(wanted.ids).first(8);  // of the first token, an ordinary one
        CHECK(std::ranges::count(chosen, 17) + std::ranges::count(chosen, 200) == (first == 0x7f80 ? 1 : 0));
        run(*trial_of(plan, service::make_trial_case(arrays)), 8);
    }
}

TEST_CASE("router: fewer instructions and bytes than the public kernel, with as many work-groups") {
    // Of that kernel, compiled by the same compiler and run by a trial simulator: wave-instructions of all
    // classes in one launch, and bytes that lanes ask for.
    struct Figures {
        std::int64_t m;
        double thousand_instructions, megabytes;
    };
    constexpr Figures kPublic[] = {{1, 417, 12.6}, {3, 543, 21}, {4, 550, 21}, {8, 897, 37.8}};
    constexpr double kShare = 0.6;

    const auto plan = prepare(4096, 512, 10, 1);
    const std::uint64_t seed = 9;
    CAPTURE(seed);
    auto trial = Trial::create(plan, 8, seed);
    REQUIRE_MESSAGE(trial, trial.error().message);
    for (std::int64_t m = 1; m <= 8; ++m) {
        const TrialResult result = run(**trial, m);
        const auto& counts = *result.counts;
        const double thousand = static_cast<double>(counts.instructions) / 1e3;
        const double megabytes =
            static_cast<double>(counts.global_bytes_read + counts.global_bytes_written) / 1e6;
        MESSAGE(result.bucket->kernel_name
                << " m=" << m << ": " << thousand << "k instructions (valu " << counts.valu << ", salu "
                << counts.salu << ", smem " << counts.smem << ", vmem " << counts.vmem << ", lds "
                << counts.lds << "), " << megabytes << " MB, " << counts.work_groups << " work-groups");
        CHECK(counts.work_groups == 257);
        for (const Figures& figures : kPublic) {
            if (figures.m == m) {
                CHECK(thousand <= kShare * figures.thousand_instructions);
                CHECK(megabytes <= figures.megabytes);
            }
        }
    }
}
