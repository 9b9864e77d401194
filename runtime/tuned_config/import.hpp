// From a file of the public form to rows of a shape table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tables/loader.hpp"
#include "runtime/tuned_config/form.hpp"

namespace kiln::tuned_config {

// A row of the file that has no counterpart here. It is in no table.
struct Leftover {
    std::size_t line = 0;
    std::string what;    // "token 8192 of model_dim=7168 inter_dim=512 expert=385 topk=9"
    std::string reason;  // "kernelName2: nothing here does what ..."
};

// A range of M between two rows of the file, or before the first: nothing was published for it.
struct Gap {
    std::size_t row = 0;            // index in Import::rows
    std::int64_t from = 0, to = 0;  // both inclusive
};

struct Import {
    Form form;  // without its rows' cells: columns, what is missing and unknown, faults
    // A row for each problem and device, in the order of the file. A bucket serves M from the one before it
    // to its token.
    std::vector<tables::Row> rows;
    std::vector<Leftover> leftovers;
    std::vector<Gap> gaps;
    std::size_t num_imported = 0;           // rows of the file that became buckets
    std::map<Timing, std::size_t> timings;  // of those
};

// `check` is the operators' judgement of a row (operators::check_row): a row of the file that the template
// refuses has no counterpart. With faults in the form there is nothing else in the answer.
// The provenance of each row keeps what the file says (provenance.hpp).
[[nodiscard]] Import import_csv(std::string_view file, std::string_view text, const tables::RowCheck& check);

// Puts what serves now into the row's gaps and above its last bucket: the buckets of `present`, cut to them.
// Where that has none, the next bucket of the row goes on serving. The gaps that are left are returned. The
// file knows nothing of problems that demand determinism, so behind each of its buckets that does not meet
// that demand stands what meets it now.
[[nodiscard]] std::vector<Gap> fill_gaps(tables::Row& row, std::vector<Gap> gaps, const tables::Row& present,
                                         const std::function<bool(const tables::Bucket&)>& is_deterministic);

}  // namespace kiln::tuned_config
