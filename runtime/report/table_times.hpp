// The times that rows of shape tables say. Inside this room only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/report/report.hpp"
#include "runtime/tables/table.hpp"

namespace kiln::report {

struct TableTime {
    Basis basis = Basis::measured;
    std::string where;  // device and driver, or the file that it was imported from
    tables::Bucket bucket;
    std::int64_t m = 0;
    double us = 0;
    bool stands = false;  // the row has such a bucket at M
};

// By the provenance's kind:
//   imported          the time of each row of the file whose bucket still stands there
//   measured, model   `tuned`, what a tune chose at each M and its runner-up; or `microseconds_at_max_m`, a
//                     number for each bucket
// Other kinds say none. What is not as it should be in a provenance, which nothing checks, says none either.
[[nodiscard]] std::vector<TableTime> times_of(const tables::Row& row);

}  // namespace kiln::report
