// The table that `kiln tune --out` puts rows into.
#pragma once

#include <string>

#include "base/error.hpp"
#include "runtime/service/service.hpp"
#include "runtime/tune/tuner.hpp"

namespace kiln::cli {

// Looked at before hours of work: it is sound, its folder, which is made, takes files, and it is not the file
// that the results go to. Nothing to look at where `path` is empty.
[[nodiscard]] Result<void> check_tuned_table(const std::string& path, const std::string& all_candidates,
                                             const service::Service& service);

// Whether a row was made that gives way to none.
[[nodiscard]] bool has_new_rows(const tune::TuneResult& result);

// Puts the rows into the file as it is now, which is not what it was before the tune; into an empty table
// that is written nowhere where `path` is empty or no row is new. Notes which rows gave way. The table's
// text.
[[nodiscard]] Result<std::string> put_tuned_rows(const std::string& path, const service::Service& service,
                                                 tune::TuneResult& result);

}  // namespace kiln::cli
