// The cost model: which part of the chip a kernel waits for.

#include <doctest/doctest.h>

#include "runtime/tune/cost_model.hpp"

using kiln::tune::KernelWork;
using kiln::tune::model_cost;

namespace {

// A kernel that streams `bytes` through `groups` work-groups.
KernelWork stream(std::uint64_t bytes, std::uint64_t groups) {
    KernelWork work{.symbol = "stream", .counts = {}, .registers = 64, .waves_per_group = 4};
    work.counts.global_lines_read = work.counts.die_lines_read = bytes / 128;
    work.counts.global_line_requests = bytes / 128;
    work.counts.work_groups = groups;
    work.counts.waves = 4 * groups;
    work.counts.instructions = 100 * work.counts.waves;
    return work;
}

double us_of(const KernelWork& work) {
    return model_cost(std::vector{work}).us;
}

std::string bound_of(const KernelWork& work) {
    return model_cost(std::vector{work}).kernels.front().bound_by;
}

}  // namespace

TEST_CASE("ALargeStreamWaitsForMemoryAtTheStatedRate") {
    const auto work = stream(560'000'000, 2048);
    CHECK(bound_of(work) == "memory");
    // 4'375'000 requests of a line, of 256 units, add to it.
    CHECK(us_of(work) == doctest::Approx(100 + 14.2 + 2.1).epsilon(0.01));
    // Too few work-groups have too little in flight, and so have too few waves.
    CHECK(us_of(stream(560'000'000, 16)) > 2 * us_of(work));
    auto fat = work;
    fat.lds_bytes = 160 * 1024;
    CHECK(us_of(fat) >= us_of(work));
}

TEST_CASE("EachPartOfTheChipCanBeWhatAKernelWaitsFor") {
    auto work = stream(128, 256);
    CHECK(bound_of(work) == "chain");
    auto issue = work;
    issue.counts.valu = 256 * 4 * 6000;  // 6000 vector instructions on each SIMD: 10 us
    CHECK(bound_of(issue) == "issue");
    CHECK(us_of(issue) == doctest::Approx(10 + 2.1));
    auto both = issue;
    both.counts.global_lines_written = 8 * 5'600'000 / 128;  // 8 us
    CHECK(bound_of(both) == "issue");
    CHECK(us_of(both) == doctest::Approx(10 + 8 + 2.1).epsilon(0.001));
    auto transcendental = issue;
    transcendental.counts.transcendental = issue.counts.valu;
    CHECK(us_of(transcendental) == doctest::Approx(40 + 2.1));
    auto mfma = stream(128, 1024);  // four waves a SIMD: one's products hide another's waits
    mfma.counts.mfma_cycles = 256ull * 4 * 24000;
    CHECK(bound_of(mfma) == "mfma");
    auto lds = work;
    lds.counts.lds_cycles = 256ull * 240000;
    CHECK(bound_of(lds) == "lds");
    CHECK(us_of(lds) == doctest::Approx(100 + 2.1));
    // One work-group more than there are compute units: one of them has twice as much to do.
    auto uneven = lds;
    uneven.counts.work_groups = 257;
    CHECK(us_of(uneven) > 1.9 * us_of(lds));
}

TEST_CASE("KernelsOfALaunchRunOneAfterTheOther") {
    const auto work = stream(56'000'000, 2048);
    CHECK(model_cost(std::vector{work, work}).us == doctest::Approx(2 * us_of(work)));
    CHECK(model_cost({}).us == 0);
}
