// What fused_moe/small_m costs when it runs, on the simulator, against the figures of public kernels for the
// same operator.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fused_moe_device.hpp"

using namespace kiln;
using namespace kiln::kernels_test;

namespace {

// Of those kernels, compiled by the same compiler and run by a trial simulator: wave-instructions of all
// classes in one launch, and bytes that lanes ask for.
struct KernelFigures {
    double thousand_instructions;
    double megabytes;
};
struct Figures {
    std::int64_t m;
    KernelFigures gate_up, down;
};
struct Case {
    operators::FusedMoeProblem problem;
    std::vector<Figures> figures;
};
const std::vector<Case> kPublic = {
    {{.hidden = 4096, .intermediate = 256, .experts = 16, .slots = 11, .fp8 = false},
     {{1, {821, 14.4}, {299, 6.5}},
      {3, {1532, 22.1}, {897, 19.5}},
      {16, {6553, 84}, {4784, 104}},
      {40, {18343, 208}, {11960, 260}}}},
    {{.hidden = 4096, .intermediate = 256, .experts = 16, .slots = 11, .fp8 = true},
     {{1, {850, 27.4}, {323, 13.4}},
      {3, {1592, 39.8}, {968, 40.1}},
      {8, {3557, 80.4}, {2583, 107}},
      {20, {8601, 171}, {6456, 267}}}},
    {{.hidden = 4096, .intermediate = 128, .experts = 16, .slots = 11, .fp8 = true},
     {{48, {11868, 204}, {8675, 321}}}},
};
// Ours must stay below these shares of the instructions.
constexpr double kGateUpShare = 0.7;
constexpr double kDownShare = 0.8;

// The last expert in the last slot of every token, and ten of the others, of which the tokens share some: 15
// experts for three tokens, as the figures have it.
operators::FusedMoeArrays make_case(const operators::FusedMoeProblem& problem, std::int64_t m) {
    operators::FusedMoeArrays arrays = operators::make_fused_moe_case(problem, m, 3);
    for (std::int64_t token = 0; token < m; ++token) {
        for (std::int64_t slot = 0; slot < problem.slots; ++slot) {
            const auto pair = static_cast<std::size_t>(token * problem.slots + slot);
            const std::int64_t expert =
                slot == problem.slots - 1 ? problem.experts - 1 : (2 * token + slot) % (problem.experts - 1);
            arrays.ids[pair] = static_cast<std::int32_t>(expert);
            arrays.weights[pair] = 1.0F / static_cast<float>(slot + 2);
        }
    }
    operators::add_experts(arrays);
    return arrays;
}

void check_kernel(std::string_view name, const device::ExecutionCounts& counts, const KernelFigures& figures,
                  double share) {
    CAPTURE(std::string(name));
    const double thousand = static_cast<double>(counts.instructions) / 1e3;
    const double megabytes =
        static_cast<double>(counts.global_bytes_read + counts.global_bytes_written) / 1e6;
    MESSAGE(std::string(name) << ": " << thousand << "k instructions ("
                              << thousand / figures.thousand_instructions << " of the public kernel's; valu "
                              << counts.valu << ", mfma " << counts.mfma << ", salu " << counts.salu
                              << ", smem " << counts.smem << ", vmem " << counts.vmem << ", lds "
                              << counts.lds << "), " << megabytes << " MB (" << figures.megabytes << "), "
                              << counts.work_groups << " work-groups");
    CHECK(thousand <= share * figures.thousand_instructions);
    CHECK(megabytes <= figures.megabytes);
}

}  // namespace

TEST_CASE(
    "counts: fused_moe needs at most 0.7 and 0.8 of the public kernels' instructions and no more bytes") {
    const auto device = open_simulator();
    for (const Case& known : kPublic) {
        const std::vector<Built> all = build(derived_fused_moe(known.problem));
        const operators::FusedMoeArrays arrays = make_case(known.problem, known.figures.back().m);
        const std::vector<std::uint16_t> reference = operators::fused_moe_reference(arrays);
        const LoadedMoe loaded(*device, arrays);
        for (const Figures& figures : known.figures) {
            const Built* built = nullptr;  // the first bucket that holds m, as a plan chooses
            for (const Built& candidate : all) {
                if (built == nullptr && figures.m <= candidate.specialisation.bucket.max_m) {
                    built = &candidate;
                }
            }
            REQUIRE(built != nullptr);
            INFO(built->specialisation.kernel_name, ", m ", figures.m);
            MESSAGE(built->specialisation.kernel_name << ", m " << figures.m);
            const LoadedMoe::Run run = loaded.run(*built, arrays, figures.m);
            const auto comparison =
                operators::compare_fused_moe(run.out, reference, figures.m, known.problem.hidden);
            CHECK(run.margins_untouched);
            CHECK(comparison.error < kMoeTokenBound);
            CHECK(relative_l2(run.out, reference) < kMoeBound);
            REQUIRE(run.counts.size() == 2);
            check_kernel("gate_up", run.counts[0], figures.gate_up, kGateUpShare);
            check_kernel("down", run.counts[1], figures.down, kDownShare);
            // The public kernels have 176 and 64 at one token.
            CHECK(run.counts[0].work_groups >= (known.problem.intermediate == 256 ? 256 : 128));
            CHECK(run.counts[1].work_groups >= 64);
        }
    }
}
