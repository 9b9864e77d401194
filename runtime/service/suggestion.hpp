// A row for a problem that no table has.
#pragma once

#include "runtime/operators/operator.hpp"
#include "runtime/tables/table.hpp"

namespace kiln::service {

// The row that the operator's rule gives for the target, its provenance "derived". Its problem is written out
// without defaults; loaded again it is complete. A problem that the operator never serves declines; an error
// as Operator::derive().
[[nodiscard]] operators::Answer<tables::Row> suggest_row(const operators::Operator& op,
                                                         const operators::Problem& problem,
                                                         const tables::Target& target);

}  // namespace kiln::service
