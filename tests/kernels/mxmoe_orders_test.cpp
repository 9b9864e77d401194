// What fused_moe/mxmoe leaves to time: which bits are promised, and that they come whatever the order of
// work-groups and however late stores are seen.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mxmoe_cases.hpp"

using namespace kiln;
using namespace kiln::kernels_test;
using operators::FusedMoeProblem;
using operators::MxmoeSum;

namespace {

constexpr FusedMoeProblem kProblem{.hidden = 512, .intermediate = 256, .experts = 33, .slots = 5};
constexpr std::int64_t kM = 11;
constexpr std::uint64_t kSeed = 31;

const std::vector<device::SimulationRules>& rules() {
    static const std::vector<device::SimulationRules> all = {
        {"descending", "late", "all"}, {"interleave:5", "late", "all"}, {"interleave:6", "early", "all"}};
    return all;
}

operators::Pipeline pipeline(std::int64_t block_m, MxmoeSum sum) {
    return mxmoe_pipeline(kProblem, kM,
                          {{"block_m", block_m},
                           {"f16in", block_m == 16 ? 1 : 0},
                           {"g1_nt", 0},
                           {"g2", static_cast<std::int64_t>(sum)},
                           {"g2_nt", 0}});
}

using Runs = std::array<LoadedPipeline, 3>;  // by MxmoeSum
Runs load_sums(MxmoeDevice& device, std::int64_t block_m) {
    std::vector<operators::Pipeline> wanted;
    for (const MxmoeSum sum : {MxmoeSum::atomic, MxmoeSum::combined, MxmoeSum::fused}) {
        wanted.push_back(pipeline(block_m, sum));
    }
    std::vector<LoadedPipeline> loaded = device.load(std::move(wanted));
    return {std::move(loaded[0]), std::move(loaded[1]), std::move(loaded[2])};
}

}  // namespace

TEST_CASE(
    "mxmoe orders: the same bits in every order but where atomics add up, and those within their "
    "roundings") {
    MxmoeDevice device;
    MxmoeInputs inputs(device, kProblem, kM, kSeed);
    for (const std::int64_t block_m : {16, 32, 64, 128}) {
        const Runs sums = load_sums(device, block_m);
        // Blocks of 128 rows are mostly padding here: few of them show as much.
        const Routing routing = block_m < 64 ? Routing::mixed : Routing::three;
        const operators::FusedMoeArrays& arrays = inputs.arrays(routing);
        const operators::MxmoeReference& reference = inputs.reference(routing);
        const auto run = [&](const LoadedPipeline& loaded) {
            MxmoeDevice::Run result = device.run(loaded, inputs.weights(), arrays, kM);
            check_mxmoe_run(loaded, result, arrays, reference, kM);
            return std::move(result.out);
        };
        const auto check_all = [&](const std::vector<std::uint16_t>& expected) {
            CAPTURE(block_m);
            CHECK(run(sums[1]) == expected);
            CHECK(run(sums[2]) == expected);
            CHECK(operators::count_beyond_rounding(run(sums[0]), expected, reference, kProblem.slots) == 0);
        };
        const std::vector<std::uint16_t> expected = run(sums[1]);
        check_all(expected);
        for (const device::SimulationRules& each : rules()) {
            CAPTURE(each.order);
            CAPTURE(each.scopes);
            device.follow(each);
            check_all(expected);
        }
        device.follow({});
    }
}

TEST_CASE("mxmoe orders: who combines what others wrote reads it too early without a release or an acquire") {
    for (const std::string_view line : {"release_to_device();", "acquire_from_device();"}) {
        CAPTURE(std::string(line));
        MxmoeDevice device;
        const LoadedPipeline whole = device.load_one(pipeline(16, MxmoeSum::fused));
        operators::Pipeline changed = pipeline(16, MxmoeSum::fused);
        operators::Specialisation& g2 = changed.stages[whole.find("g2")].specialisation;
        const std::size_t at = g2.request.source.find(line);
        REQUIRE(at != std::string::npos);
        g2.request.source.erase(at, line.size());
        g2.request_document += line;  // a specialisation of its own
        const LoadedPipeline faulty = device.load_one(std::move(changed));

        MxmoeInputs inputs(device, kProblem, kM, kSeed);
        const auto run = [&](const LoadedPipeline& loaded, const char* scopes) {
            device.follow({"shuffle:3", scopes, "none"});
            // What a stale read finds.
            const MxmoeMemory memory(device.device(), loaded.pipeline, kM, MxmoeMemory::Layout::packed, 0x41);
            return device.run(loaded, inputs.weights(), inputs.arrays(Routing::mixed), kM, memory).out;
        };
        const std::vector<std::uint16_t> expected = run(whole, "late");
        CHECK(run(whole, "early") == expected);
        CHECK(run(faulty, "early") == expected);
        CHECK(run(faulty, "late") != expected);
    }
}
