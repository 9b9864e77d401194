// The service's shape table: every layer that the settings name over the shipped one, judged by the operators
// and by the templates that there are.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/service/settings.hpp"
#include "runtime/service/snapshot.hpp"
#include "runtime/tables/loader.hpp"

namespace kiln::service {

// Reads every layer anew: the sound rows, every fault, every warning. An error only when the library carries
// no schema. With KILN_KERNEL_PATH, every template that a row names is read by that, so that whoever keeps
// `sources` has templates and tables of one moment.
[[nodiscard]] Result<tables::LoadedTable> load_tables(const Settings& settings, const KernelSources& sources);
[[nodiscard]] Result<tables::LoadedTable> load_tables(const Settings& settings);

// The same whole or not at all: tables and templates that never change, or every fault in one error of code
// bad_input. `before` is what a reload replaces, or null: a template that it had read must still be there.
// Warnings go to the log.
[[nodiscard]] Result<SnapshotPtr> open_snapshot(const Settings& settings, const Snapshot* before);

}  // namespace kiln::service
