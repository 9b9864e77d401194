// What the three templates of moe_sort compute on the simulator, each made to serve whatever it can, also
// where the shipped rows choose another.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "device.hpp"
#include "moe_sort_device.hpp"
#include "runtime/operators/moe_sort_reference.hpp"
#include "runtime/service/budget.hpp"
#include "shipped.hpp"

using namespace kiln;
using namespace kiln::kernels_test;
using operators::MoeSortArrays;
using operators::MoeSortDraw;
using operators::MoeSortProblem;

namespace {

constexpr std::uint64_t kSeed = 20;

const char* const kTemplates[] = {"compact", "distributed", "general"};

// Whether the template takes a case at all.
bool takes(std::string_view name, const MoeSortArrays& arrays) {
    const std::int64_t pairs = arrays.m * arrays.problem.slots;
    return name == "general" || pairs <= (name == "compact" ? 64 : 256);
}

void check(MoeSortDevice& device, std::string_view name, const MoeSortArrays& arrays) {
    const auto [experts, slots, block_m, hidden, quantised] = arrays.problem;
    INFO(fmt::format("moe_sort/{} experts={} slots={} block_m={} hidden={} quant={} m={} seed={}", name,
                     experts, slots, block_m, hidden, quantised, arrays.m, kSeed));
    const MoeSortRun run = device.run(name, arrays);
    const auto comparison =
        compare_moe_sort(arrays, operators::moe_sort_reference(arrays, MoeSortDevice::kFiller), run.result);
    CHECK_MESSAGE(comparison.passed(), comparison.remark);
    CHECK(run.margins_untouched);
    CHECK(run.counters_zero);
}

// Every template that takes it, every draw.
void check_all(MoeSortDevice& device, const MoeSortProblem& problem, const std::vector<std::int64_t>& ms) {
    for (const std::int64_t m : ms) {
        for (const auto draw : {MoeSortDraw::mixed, MoeSortDraw::distinct, MoeSortDraw::one_expert}) {
            const MoeSortArrays arrays = operators::make_moe_sort_case(problem, m, kSeed, draw);
            for (const char* name : kTemplates) {
                if (takes(name, arrays)) {
                    check(device, name, arrays);
                }
            }
        }
    }
}

}  // namespace

TEST_CASE("moe_sort: Qwen3.5's 513 experts and 11 slots with the quantiser, every block size") {
    MoeSortDevice device;
    for (const std::int64_t block_m : {16, 32, 64, 128}) {
        check_all(device, {513, 11, block_m, 2048, true}, {1, 2, 4, 5, 6, 7, 16, 23});
    }
}

TEST_CASE("moe_sort: other models' experts and slots, zeroing or not") {
    MoeSortDevice device;
    check_all(device, {129, 5, 32, 0, false}, {12, 13, 16, 25, 35, 51, 52});
    check_all(device, {256, 8, 64, 0, false}, {1, 8, 9, 32, 33});
    check_all(device, {257, 9, 16, 520, false}, {1, 7, 28, 29});  // the last piece of a token is not whole
    check_all(device, {385, 9, 128, 4096, true}, {1, 3, 28});
    check_all(device, {16, 4, 16, 0, false}, {1, 8, 9, 16, 17, 64, 65});
    check_all(device, {128, 10, 32, 8, false}, {6, 7, 25, 26});
    check_all(device, {384, 10, 64, 0, false}, {6, 7, 25, 26});
}

TEST_CASE("moe_sort: the ends of experts and slots") {
    MoeSortDevice device;
    check_all(device, {1, 1, 16, 0, false}, {1, 16, 17, 64, 65, 256, 257});
    check_all(device, {2, 10, 16, 8, false}, {1, 2, 25});  // fewer experts than slots: ids repeat
    check_all(device, {1024, 16, 128, 0, false}, {1, 4, 16, 60});
}

TEST_CASE("moe_sort: every pair on its own expert, first and last expert among them") {
    MoeSortDevice device;
    for (const std::int64_t m : {4, 16, 64}) {
        MoeSortArrays arrays = operators::make_moe_sort_case({m * 16, 16, 16, 0, false}, m, kSeed);
        for (std::size_t pair = 0; pair < arrays.ids.size(); ++pair) {  // descending: all change places
            arrays.ids[pair] = static_cast<std::int32_t>(arrays.ids.size() - 1 - pair);
        }
        for (const char* name : kTemplates) {
            if (takes(name, arrays)) {
                check(device, name, arrays);
            }
        }
    }
}

TEST_CASE("moe_sort: no pair has an expert") {
    MoeSortDevice device;
    for (const std::int32_t id : {-1, 16, 0x7fffffff, -0x7fffffff - 1}) {
        MoeSortArrays arrays = operators::make_moe_sort_case({16, 4, 32, 2048, true}, 3, kSeed);
        std::fill(arrays.ids.begin(), arrays.ids.end(), id);
        for (const char* name : kTemplates) {
            check(device, name, arrays);
        }
    }
}

TEST_CASE("moe_sort: many tokens: runs of more than one step, more work-groups than 64") {
    MoeSortDevice device;
    for (const auto draw : {MoeSortDraw::mixed, MoeSortDraw::one_expert}) {
        check(device, "general", operators::make_moe_sort_case({385, 9, 32, 0, false}, 3700, kSeed, draw));
    }
    check(device, "general", operators::make_moe_sort_case({3, 1, 16, 8, false}, 16385, kSeed));
}

TEST_CASE("moe_sort: weights are moved bit by bit") {
    MoeSortDevice device;
    MoeSortArrays arrays = operators::make_moe_sort_case({8, 4, 16, 0, false}, 16, kSeed);
    constexpr std::uint32_t kBits[] = {0x7fc12345, 0x7f800001, 0xff800000, 0x80000000, 1, 0xffffffff};
    for (std::size_t pair = 0; pair < arrays.weights.size(); ++pair) {
        std::memcpy(&arrays.weights[pair], &kBits[pair % std::size(kBits)], sizeof(float));
    }
    for (const char* name : kTemplates) {
        check(device, name, arrays);
    }
}

TEST_CASE("moe_sort: the scale of every largest magnitude that bf16 has, and elements next to every tie") {
    MoeSortDevice device;
    constexpr std::size_t kGroup = 32;
    constexpr std::int64_t kHidden = 2048;
    // A group for each magnitude from 0 to the largest finite one, its largest in a lane of its own.
    constexpr std::size_t kMagnitudes = 0x7f80;
    const std::int64_t m = (kMagnitudes * kGroup + kHidden - 1) / kHidden;
    MoeSortArrays arrays = operators::make_moe_sort_case({4, 1, 16, kHidden, true}, m, kSeed);
    for (std::size_t i = 0; i < static_cast<std::size_t>(m * kHidden); ++i) {
        const std::size_t largest = std::min(i / kGroup, kMagnitudes - 1);
        // From the largest down in steps that reach through all of e4m3's binades, with either sign.
        const std::size_t down = (i % kGroup + i / kGroup) % kGroup * 71;
        const std::size_t magnitude = largest > down ? largest - down : 0;
        arrays.x[i / kHidden * static_cast<std::size_t>(arrays.ldx) + i % kHidden] =
            static_cast<std::uint16_t>(magnitude | (i % 3 == 0 ? 0x8000 : 0));
    }
    check(device, "general", arrays);
}

TEST_CASE("moe_sort: an infinity or a NaN gives its own group the NaN scale, and no other") {
    MoeSortDevice device;
    for (const std::uint16_t bits : {0x7f80, 0xff80, 0x7fc0, 0x7f81, 0xffff}) {
        MoeSortArrays arrays =
            operators::make_moe_sort_case({16, 2, 16, 2048, true}, 2, kSeed, MoeSortDraw::distinct);
        arrays.x[static_cast<std::size_t>(arrays.ldx) + 37 * 32 + 31] = bits;
        const auto expected = operators::moe_sort_reference(arrays, MoeSortDevice::kFiller);
        CHECK(std::count(expected.q_scale.begin(), expected.q_scale.end(), 255) == 2);  // its rows
        for (const char* name : kTemplates) {
            check(device, name, arrays);
        }
    }
}

TEST_CASE(
    "moe_sort: the same bits in every order of work-groups and waves, and with stores that arrive late") {
    MoeSortDevice device;
    const MoeSortArrays few = operators::make_moe_sort_case({64, 8, 32, 2048, true}, 8, kSeed);
    const MoeSortArrays many = operators::make_moe_sort_case({385, 9, 32, 8, false}, 100, kSeed);
    for (const char* order : {"ascending", "descending", "shuffle:5", "interleave:5", "interleave:6"}) {
        for (const char* scopes : {"early", "late"}) {
            INFO(order << ", " << scopes);
            device.follow({order, scopes, "all"});
            for (const char* name : kTemplates) {
                check(device, name, few);
            }
            check(device, "general", many);  // four work-groups elect their last
        }
    }
    device.follow({});
}

TEST_CASE("moe_sort: a count that does not release, or does not acquire, is found by late stores") {
    MoeSortDevice device;
    // Without the check for races, which would end the launch before there is a result.
    device.follow({"interleave:5", "late", "uninitialised,freed"});
    const MoeSortArrays arrays = operators::make_moe_sort_case({385, 9, 32, 0, false}, 100, kSeed);
    const auto expected = operators::moe_sort_reference(arrays, MoeSortDevice::kFiller);
    for (const char* fence : {"release_to_device();", "acquire_from_device();"}) {
        CAPTURE(fence);
        const MoeSortRun run = device.run("general", arrays, {fence, ";"});
        CHECK_FALSE(compare_moe_sort(arrays, expected, run.result).passed());
    }
    // The same with both of them, changed in nothing that matters.
    const MoeSortRun run = device.run("general", arrays, {"is_last = Small", "is_last =  Small"});
    CHECK(compare_moe_sort(arrays, expected, run.result).passed());
    device.follow({});
}

TEST_CASE("moe_sort: the examples of the shipped rows compile without a warning and keep their budgets") {
    const std::vector<Built> all = build(shipped_specialisations("gfx950", "moe_sort"));
    REQUIRE(all.size() >= 10);
    for (const Built& built : all) {
        CAPTURE(built.specialisation.kernel_name);
        CHECK(built.result.log.empty());
        CHECK(built.specialisation.bucket.budget.waves_per_simd == 8);
        const auto object = compile::read_code_object(built.result.code_object);
        REQUIRE(object.has_value());
        CHECK(service::over_budget(built.specialisation, *object).empty());
        for (const compile::KernelInfo& kernel : object->kernels) {
            CHECK(kernel.agprs == 0);
        }
    }
}

TEST_CASE("moe_sort: what a launch costs is what its templates promise") {
    MoeSortDevice device;
    const MoeSortArrays arrays =
        operators::make_moe_sort_case({513, 11, 32, 4096, true}, 5, kSeed, MoeSortDraw::distinct);
    for (const char* name : kTemplates) {
        const MoeSortRun run = device.run(name, arrays);
        MESSAGE(std::string(name) << ": " << run.counts.instructions << " instructions, "
                                  << run.counts.global_bytes_read << " bytes read, "
                                  << run.counts.global_bytes_written << " written, " << run.counts.work_groups
                                  << " work-groups");
        // Tokens are read once, zeros, elements and rows are written once.
        const std::uint64_t tokens = 5 * 4096;
        const std::uint64_t rows = static_cast<std::uint64_t>(run.result.num_valid[0]);
        const std::uint64_t least = 2 * tokens + tokens + 55 * 4096 / 32 + 8 * rows + rows / 32 * 4 + 8;
        CHECK(run.counts.global_bytes_written >= least);
        if (std::string_view(name) != "general") {
            CHECK(run.counts.global_bytes_written == least);
        }
    }
}
