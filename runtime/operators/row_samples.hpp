// Problems that stand for all those that a general row is for.
#pragma once

#include <vector>

#include "runtime/operators/operator.hpp"

namespace kiln::operators {

// A few problems that the row admits and the operator serves, complete. For each open field these are tried:
// its default, else the multiples of powers of two that lie nearest to the ends of its range, since operators
// ask for no more than alignment, order and bounds. Then each of its other words in a problem that is served
// so; all words at once where none is. None is no proof that there is none.
// Requires a row that check_row() completed.
[[nodiscard]] std::vector<Problem> legal_samples(const Operator& op, const tables::Row& row);

}  // namespace kiln::operators
