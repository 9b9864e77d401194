// What fused_moe/mxmoe leaves to time: which bits are promised, and that they come whatever the order of
// work-groups and however late stores are seen.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <map>
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

}  // namespace

TEST_CASE(
    "mxmoe orders: the same bits in every order but where atomics add up, and those within their "
    "roundings") {
    struct Height {
        std::int64_t block_m;
        std::vector<MxmoeSum> sums;
    };
    const std::vector<Height> heights = {{16, {MxmoeSum::combined, MxmoeSum::fused, MxmoeSum::atomic}},
                                         {32, {MxmoeSum::combined, MxmoeSum::atomic}},
                                         {64, {MxmoeSum::combined, MxmoeSum::atomic}},
                                         {128, {MxmoeSum::combined, MxmoeSum::fused, MxmoeSum::atomic}}};
    std::vector<operators::Pipeline> wanted;
    for (const auto& [block_m, sums] : heights) {
        for (const MxmoeSum sum : sums) {
            wanted.push_back(pipeline(block_m, sum));
        }
    }
    MxmoeDevice& device = simulated_mxmoe();
    const std::vector<LoadedPipeline> all = device.load(std::move(wanted));
    MxmoeInputs inputs(device, kProblem, kM, kSeed);
    std::map<std::int64_t, std::vector<std::uint16_t>> expected;  // by block_m
    for (std::size_t i = 0; i <= rules().size(); ++i) {
        device.follow(i == 0 ? device::SimulationRules{} : rules()[i - 1]);
        CAPTURE(i);
        for (const LoadedPipeline& loaded : all) {
            const operators::MxmoeBucket bucket = mxmoe_bucket(loaded.pipeline);
            // Blocks of many rows are mostly padding here: few of them show as much.
            const Routing routing = bucket.block_m < 64 ? Routing::mixed : Routing::three;
            const operators::FusedMoeArrays& arrays = inputs.arrays(routing);
            const operators::MxmoeReference& reference = inputs.reference(routing);
            const MxmoeDevice::Run run = device.run(loaded, inputs.weights(), arrays, kM);
            check_mxmoe_run(loaded, run, arrays, reference, kM);
            CAPTURE(loaded.pipeline.kernel_name);
            const auto& bits = expected.try_emplace(bucket.block_m, run.out).first->second;
            if (bucket.sum == MxmoeSum::atomic) {
                CHECK(operators::count_beyond_rounding(run.out, bits, reference, kProblem.slots) == 0);
            } else {
                CHECK(run.out == bits);
            }
        }
    }
    device.follow({});
}

TEST_CASE("mxmoe orders: who combines what others wrote reads it too early without a release or an acquire") {
    for (const std::string_view line : {"release_to_device();", "acquire_from_device();"}) {
        CAPTURE(std::string(line));
        MxmoeDevice& device = simulated_mxmoe();
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
        device.follow({});
    }
}
