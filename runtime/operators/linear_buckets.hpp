// The buckets of a row of `linear` from a rule that chooses constants for one bucket.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "runtime/operators/linear.hpp"
#include "runtime/operators/operator.hpp"

namespace kiln::operators {

// One for each of `ends`, ascending values of max_m, up to the first for which `choose(problem, max_m)` has
// nothing; else it has an optional of what has a bucket(). bad_input where there is none at all, with
// `expected`: what the rule wants of a problem besides weights below 4 GiB.
template <class Choose>
[[nodiscard]] Result<std::vector<Bucket>> linear_buckets(const Problem& problem, const Template& source,
                                                         std::span<const std::int64_t> ends, Choose choose,
                                                         std::string_view expected) {
    std::vector<Bucket> buckets;
    for (const std::int64_t max_m : ends) {
        const auto choice = choose(problem, max_m);
        if (!choice) {
            break;
        }
        buckets.push_back(choice->bucket());
    }
    if (buckets.empty()) {
        return fail(ErrorCode::bad_input, Stage::table,
                    fmt::format("{} {}: expected weights below 4 GiB, and {}, found a problem that no "
                                "constants of {} serve on {}",
                                linear().name(), format_problem(linear(), problem), expected, source.id(),
                                source.processor()));
    }
    return buckets;
}

}  // namespace kiln::operators
