// The other side of a TrialProcess: tries candidates of one problem, one after the other, and says how far
// each came.
//
// clang-format off
//   {"begin": {"operator", "problem", "target", "max_m", "seed", "ordinal"}}  ->  {"ready": true} or {"failure": TEXT}
//   {"try": {"m", "bucket", "error_bound", "warmup", "iters"}}                ->  a finding (record.hpp)
// clang-format on
//
// A candidate goes the way that a row of a table goes: it is the only bucket of the only row of a table,
// which is read, selected from, prepared and launched. Its result is checked (service/trial.hpp) before
// anything is timed. Inputs and reference are made once for all candidates of the problem.
#pragma once

#include "runtime/service/settings.hpp"

namespace kiln::tune {

// Serves until its standard input ends, or the process that started it, of the number `parent`, does.
// `overrides` as that one has them, but for the tables. Returns the exit code.
[[nodiscard]] int serve_trials(const service::Overrides& overrides, int parent);

}  // namespace kiln::tune
