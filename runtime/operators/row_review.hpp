// What can be said of a row beyond whether it is well-formed: constants of a general row that lists no
// problem, ranges that nothing meets, buckets that never serve.
#pragma once

#include <span>
#include <vector>

#include "runtime/operators/operator.hpp"

namespace kiln::operators {

// For rows that check_row() found no fault in. `given` are the buckets as the table lists them, of which an
// exact row has lost those that serve no M. Names of constants that its template does not take, or misses,
// are faults of a general row without problems; all else is a warning, since another problem may be served.
[[nodiscard]] std::vector<tables::RowFault> review_row(const tables::Row& row, std::span<const Bucket> given);

}  // namespace kiln::operators
