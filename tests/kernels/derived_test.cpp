// What the rules of linear/small_m derive for problems that no table has, through the real compiler: no
// constants that it may choose make the compiler spill. Minutes of compiling, hence apart from the others.
#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "shipped.hpp"

using namespace kiln;
using namespace kiln::kernels_test;

namespace {

// Registers, LDS and code depend on the constants and on the blocks of a wave, not on N.
using Kind = std::pair<tables::Constants, std::pair<std::int64_t, std::int64_t>>;

// Adds what the rule makes for the problem, where no other problem has led to the same kernel.
void add(std::string_view processor, std::int64_t n, std::int64_t k, std::set<Kind>& seen,
         std::vector<operators::Specialisation>& wanted) {
    const auto problem = operators::complete(operators::linear(), {{"n", n}, {"k", k}});
    REQUIRE(problem);
    const auto buckets = operators::linear().derive(*problem, *tables::parse_target(processor));
    if (!buckets) {
        return;
    }
    for (const operators::Bucket& bucket : *buckets) {
        if (seen.insert({bucket.constants, {bucket.max_m, k}}).second) {
            wanted.push_back(specialise_linear(n, k, bucket.max_m, bucket.constants, processor));
        }
    }
}

// Problems of every K up to 8192, and some beyond. Always the same ones: a combination on which the compiler
// happens to spill is a matter for the rule, not for a run that was about something else.
std::vector<operators::Specialisation> derived(std::string_view processor) {
    std::set<Kind> seen;
    std::vector<operators::Specialisation> wanted;
    std::mt19937_64 random(20);
    for (std::int64_t blocks = 1; blocks <= 64; ++blocks) {
        add(processor, 16, 128 * blocks, seen, wanted);
        // So many that the rule takes this many tiles, where it may.
        add(processor, 16 * 256 * static_cast<std::int64_t>(2 + random() % 7), 128 * blocks, seen, wanted);
    }
    for (int i = 0; i < 30; ++i) {
        add(processor, 16 * static_cast<std::int64_t>(1 + random() % 3000),
            128 * static_cast<std::int64_t>(1 + random() % 260), seen, wanted);
    }
    MESSAGE(wanted.size() << " kernels for " << processor);
    return wanted;
}

// Builds a hundred at a time, since each waits in a thread of its own.
template <class Check>
void for_each_built(std::vector<operators::Specialisation> wanted, Check check) {
    while (!wanted.empty()) {
        const std::size_t rest = wanted.size() > 100 ? wanted.size() - 100 : 0;
        std::vector<operators::Specialisation> part(
            std::make_move_iterator(wanted.begin() + static_cast<std::ptrdiff_t>(rest)),
            std::make_move_iterator(wanted.end()));
        wanted.resize(rest);
        for (const Built& built : build(std::move(part))) {
            CAPTURE(built.specialisation.kernel_name);
            CHECK(built.result.log.empty());
            check(built.kernel());
        }
    }
}

}  // namespace

TEST_CASE("derived: every K up to 8192 with some numbers of tiles, and some beyond, compile without spills") {
    for_each_built(derived("gfx950"), [](const compile::KernelInfo& kernel) {
        CHECK(kernel.vgpr_spills == 0);
        CHECK(kernel.sgpr_spills == 0);
        CHECK(kernel.scratch_bytes == 0);
        CHECK(kernel.vgprs <= 128);
    });
}

TEST_CASE("derived: the same for sm_90a compile without a stack") {
    if (!can_build_for("sm_90a")) {
        return;
    }
    for_each_built(derived("sm_90a"),
                   [](const compile::KernelInfo& kernel) { CHECK(kernel.scratch_bytes == 0); });
}
