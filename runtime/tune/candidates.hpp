// What a tuner tries for one problem and M: buckets that could serve it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/operators/operator.hpp"
#include "runtime/tables/target.hpp"

namespace kiln::tune {

struct Candidate {
    tables::Bucket bucket;  // without a budget
    bool present = false;   // it serves now, as it stands: its max_m may lie above the M that is tuned

    friend bool operator==(const Candidate&, const Candidate&) = default;
};

// Every combination of a space, in its order: of each product the last constant varies first.
[[nodiscard]] std::vector<tables::Constants> combinations(const operators::Space& space);

// The bucket that serves now (null: none does), first; then, ending at `m`, what the operator's templates for
// the processor declare as their space and accept, and the present one's template and constants: as far as
// they meet what the problem demands. Each once, in an order that depends on nothing else. Requires a problem
// that the operator's judge() accepts. Where `templates` names any, spaces of others are left out.
[[nodiscard]] std::vector<Candidate> candidates(const operators::Operator& op,
                                                const operators::Problem& problem, std::int64_t m,
                                                const tables::Target& target, const tables::Bucket* present,
                                                std::span<const std::string> templates = {});

}  // namespace kiln::tune
