// The service's shape table: every layer that the settings name over the shipped one, judged by the operators
// and by the templates that there are.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "runtime/service/settings.hpp"
#include "runtime/tables/loader.hpp"

namespace kiln::service {

// Reads every layer anew: the sound rows, every fault, every warning. An error only when the library carries
// no schema.
[[nodiscard]] Result<tables::LoadedTable> load_tables(const Settings& settings);

// The same whole or not at all: a table that never changes, or every fault in one error of code bad_input.
// Warnings go to the log.
[[nodiscard]] Result<std::shared_ptr<const tables::Table>> open_table(const Settings& settings);

// The texts that the library carries, without the schema: the shipped layer.
[[nodiscard]] tables::Layer shipped_layer();

}  // namespace kiln::service
