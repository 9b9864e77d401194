// What the provenance of an imported row keeps, read back.
//
// Of kind "imported":
//   file      the name of the file, without its folders
//   columns   the names of the columns, in the file's order
//   rows      for each bucket: max_m, line, timing (form.hpp), the numbers us, us1, us2, err1, err2 that
//   there are,
//             and cells: the row as it was written, column by column
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/tables/table.hpp"
#include "runtime/tuned_config/form.hpp"

namespace kiln::tuned_config {

struct ImportedRow {
    std::vector<std::string> columns;
    FormRow row;  // its cells by `columns`
};

// The row of the file that the bucket was imported from; nothing where it has none, or where bucket, problem
// or device are no longer what that row says: the bucket was edited, and the row's times are not its own.
[[nodiscard]] std::optional<ImportedRow> imported_row(const tables::Row& row, const tables::Bucket& bucket);

}  // namespace kiln::tuned_config
