// From rows of shape tables to a file of the public form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/tables/table.hpp"

namespace kiln::tuned_config {

// A bucket, or a whole row, that the form has no words for.
struct Unwritten {
    std::string origin;  // "shapes/fused_moe.json:12"
    std::string what;    // "max_m 20"; empty: the row
    std::string reason;
};

struct Export {
    std::string text;  // the header, then a line for each row of the file
    std::size_t num_rows = 0;
    std::vector<Unwritten> unwritten;
    std::size_t num_of_other_operators = 0;  // rows, of which the form knows nothing
};

// A bucket that import_csv() made, and that nobody edited since, is written as its row was. Any other one of
// fused_moe/mxmoe is written for each power of two from the bucket before it to its max_m, which must be one
// itself; its times are empty, but where kiln tune measured a bucket with these constants at that token, end
// to end. What a cost model says is never written. Of two buckets with one max_m the second is for problems
// that demand determinism, for which the form has no word.
//
// `cu_num` stands in that column for rows that do not say; nothing leaves it empty. Columns are those of the
// form, then others that an import kept.
[[nodiscard]] Export export_csv(std::span<const std::shared_ptr<const tables::Row>> rows,
                                std::optional<std::int64_t> cu_num);

}  // namespace kiln::tuned_config
