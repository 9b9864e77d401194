// The shipped shape tables: their texts, and their rows as they were read, held to the schema and judged by
// the operators when kiln was built. A build that finds a fault in one fails.
//
// Constant for the life of the process and free to be read from any thread.
#pragma once

#include <string_view>

#include "base/error.hpp"
#include "runtime/tables/loader.hpp"
#include "runtime/tables/table.hpp"

namespace kiln::shipped {

// The schema of every shape table. An error only when the library was built without it.
[[nodiscard]] Result<std::string_view> schema();
// What the library carries, without the schema.
[[nodiscard]] tables::Layer texts();
// What loading texts() gives, without loading them.
[[nodiscard]] tables::RowLayer rows();

}  // namespace kiln::shipped
