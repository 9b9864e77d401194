// What linear/small_m costs when it runs, on the simulator, against the figures of a public kernel for the
// same operator.
#include <doctest/doctest.h>

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "device.hpp"
#include "runtime/operators/linear_reference.hpp"
#include "shipped.hpp"

using namespace kiln;
using namespace kiln::kernels_test;

namespace {

// Of that public kernel, compiled by the same compiler and run by a trial simulator: wave-instructions of all
// classes in one launch, bytes that lanes ask for, work-groups.
struct Figures {
    std::int64_t m;
    double thousand_instructions;
    double megabytes;
};
struct Case {
    std::int64_t n, k, work_groups;
    std::vector<Figures> figures;
};
const std::vector<Case> kPublic = {
    {5120, 4096, 160, {{1, 1364, 23.6}, {8, 1409, 32.8}, {16, 1409, 43.3}, {32, 2611, 64.2}}},
    {4608, 4096, 144, {{1, 1228, 21.2}, {8, 1268, 29.5}, {16, 1268, 39.0}, {32, 2350, 57.8}}},
    {4096, 2048, 256, {{1, 1036, 10.5}, {8, 1058, 17.8}, {16, 1214, 26.2}, {32, 1980, 43.0}}},
};
// Ours must stay below this share of the instructions, and not give up parallelism for it.
constexpr double kShare = 0.5;
constexpr double kWorkGroupShare = 0.8;

}  // namespace

TEST_CASE(
    "counts: linear needs fewer than half the public kernel's instructions, as many work-groups, no more "
    "bytes") {
    const auto device = open_simulator();
    std::vector<operators::Specialisation> wanted;
    for (operators::Specialisation& specialisation : shipped_specialisations("gfx950")) {
        for (const Case& known : kPublic) {
            if (std::get<std::int64_t>(specialisation.problem.find("n")->second) == known.n &&
                std::get<std::int64_t>(specialisation.problem.find("k")->second) == known.k) {
                wanted.push_back(specialisation);
            }
        }
    }
    const std::vector<Built> all = build(std::move(wanted));

    for (const Case& known : kPublic) {
        const std::int64_t max_m = known.figures.back().m;
        const std::uint64_t seed = 2;
        const operators::LinearArrays arrays = operators::make_linear_case(max_m, known.n, known.k, seed);
        const std::vector<double> reference = operators::linear_reference(arrays);
        const LoadedCase loaded(*device, arrays);
        for (const Figures& figures : known.figures) {
            const Built* built = nullptr;  // the first bucket that holds m, as a plan chooses
            for (const Built& candidate : all) {
                if (candidate.field("n") == known.n && candidate.field("k") == known.k &&
                    figures.m <= candidate.specialisation.bucket.max_m && built == nullptr) {
                    built = &candidate;
                }
            }
            REQUIRE(built != nullptr);
            CAPTURE(built->specialisation.kernel_name);
            CAPTURE(figures.m);

            const auto [out, past_end_untouched, counts] = loaded.run(*built, figures.m);
            const auto comparison = operators::compare_linear(out, reference, figures.m, known.n);
            CHECK(past_end_untouched);
            CHECK(comparison.passed());

            const double thousand = static_cast<double>(counts.instructions) / 1e3;
            const double megabytes =
                static_cast<double>(counts.global_bytes_read + counts.global_bytes_written) / 1e6;
            MESSAGE(built->specialisation.kernel_name
                    << " m=" << figures.m << ": " << thousand << "k instructions ("
                    << thousand / figures.thousand_instructions << " of the public kernel's; valu "
                    << counts.valu << ", mfma " << counts.mfma << ", salu " << counts.salu << ", smem "
                    << counts.smem << ", vmem " << counts.vmem << ", lds " << counts.lds << "), " << megabytes
                    << " MB (" << figures.megabytes << "), " << counts.work_groups
                    << " work-groups, differing " << comparison.differing);
            CHECK(thousand <= kShare * figures.thousand_instructions);
            CHECK(megabytes <= figures.megabytes);
            CHECK(static_cast<double>(counts.work_groups) >=
                  kWorkGroupShare * static_cast<double>(known.work_groups));
        }
    }
}
