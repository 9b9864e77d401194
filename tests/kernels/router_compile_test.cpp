// router/one_launch through the real compiler: what its code must look like.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/compile/listing.hpp"
#include "runtime/service/budget.hpp"
#include "shipped.hpp"

using namespace kiln;
using namespace kiln::kernels_test;

namespace {

std::vector<std::string> complaints(const Built& built) {
    const auto object = compile::read_code_object(built.result.code_object);
    REQUIRE(object);
    return service::over_budget(built.specialisation, *object);
}

void check_one_launch(const Built& built) {
    CAPTURE(built.specialisation.kernel_name);
    const compile::KernelInfo kernel = built.kernel();
    const std::int64_t waves = built.constant("waves");
    const std::int64_t rows = built.constant("rows");
    const std::int64_t steps = (built.field("hidden") / 8 + 64 * waves - 1) / (64 * waves);

    CHECK(built.result.log.empty());  // no warnings
    CHECK(kernel.agprs == 0);
    CHECK(kernel.lds_bytes == built.specialisation.bucket.budget.lds_bytes);
    // Neither scratch nor spills, and as many waves on a SIMD as of the public kernel at least.
    CHECK(*built.specialisation.bucket.budget.waves_per_simd >= 8);
    CHECK(complaints(built).empty());
    CHECK(kernel.max_threads == 64 * waves);

    const auto listing = compile::parse_listing(built.result.listing);
    REQUIRE(listing.has_value());
    const auto count = [&](auto matches) {
        return std::ranges::count_if(listing->lines,
                                     [&](const compile::ListingLine& line) { return matches(line.text); });
    };
    // The gate is read once, past the caches; everything is released once by a work-group and acquired once
    // by the last, and once more each between the counters.
    CHECK(count([](std::string_view text) {
              return text.starts_with("buffer_load_dwordx4") && text.ends_with(" nt");
          }) == rows * steps);
    CHECK(count([](std::string_view text) { return text == "buffer_wbl2 sc1"; }) == 2);
    CHECK(count([](std::string_view text) { return text == "buffer_inv sc1"; }) == 2);
    CHECK(count([](std::string_view text) { return text.starts_with("global_atomic_inc"); }) == 2);
    CHECK(count([](std::string_view text) { return text.starts_with("flat_"); }) == 0);
}

}  // namespace

TEST_CASE("router: the largest bucket of every shipped row compiles within its budget") {
    std::vector<operators::Specialisation> largest;
    for (operators::Specialisation& specialisation : shipped_specialisations("gfx950", "router")) {
        if (specialisation.bucket.max_m == 8) {
            largest.push_back(std::move(specialisation));
        }
    }
    REQUIRE(largest.size() >= 13);
    for (const Built& built : build(std::move(largest))) {
        check_one_launch(built);
    }
}
