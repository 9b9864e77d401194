// A shape table as text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "runtime/tables/table.hpp"

namespace kiln::tables {

// A table of these rows in the form of the shipped ones: a line for each bucket. Members of a problem are
// written as they stand in the row; the provenance is `provenance.document`. Loading it gives the same rows.
[[nodiscard]] std::string to_table_text(const std::vector<Row>& rows);

// One of its rows, without the white space before it.
[[nodiscard]] std::string to_row_text(const Row& row);

// The text of a table with this row in place of that of the index (counted in "rows"), or behind all of them
// where there is no index; every other byte stays. bad_input where the text is no table.
[[nodiscard]] Result<std::string> with_row(std::string_view text, std::optional<std::size_t> index,
                                           const Row& row);

}  // namespace kiln::tables
