// A shape table as text.
#pragma once

#include <string>
#include <vector>

#include "runtime/tables/table.hpp"

namespace kiln::tables {

// A table of these rows in the form of the shipped ones: a line for each bucket. Members of a problem are
// written as they stand in the row; the provenance is `provenance.document`. Loading it gives the same rows.
[[nodiscard]] std::string to_table_text(const std::vector<Row>& rows);

}  // namespace kiln::tables
