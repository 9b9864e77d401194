// The row that a tune makes, with everything that it goes by.
#pragma once

#include <string>
#include <vector>

#include "runtime/tune/tuner.hpp"

namespace kiln::tune {

// Its provenance: {"kind", "note", "device", "driver", "compiler", "date", "tuned": [{"m", "us", "bucket":
// {"max_m", "template", "constants"}, "stays", "runner_up": {"us", "max_m", "template", "constants"}}...],
// "before": the provenance of the row that it takes the place of}. `us` is of `bucket`, whatever becomes of
// the row. A budget, and a number of compute units, is only where the row before has one. What the problem
// demands is no field of the row.
[[nodiscard]] tables::Row made_row(const TunedProblem& tuned, const Conditions& conditions,
                                   std::vector<tables::Bucket> buckets);

// What keeps a row made under these conditions from taking the place of `there`: a model says less than what
// was measured, here or by whoever published or exported it. Names the row; empty: nothing does.
[[nodiscard]] std::string gives_way_to(const Conditions& conditions, const tables::Row& there);

}  // namespace kiln::tune
