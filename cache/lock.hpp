// The kernel-held lock of one key.
#pragma once

#include <filesystem>
#include <memory>

#include "base/error.hpp"
#include "cache/store.hpp"

namespace kiln::cache {

// Blocks until nobody else, in this process or another, holds the lock of `path`, an empty file that is made
// where it does not exist (its folder must exist: not_found otherwise). An empty lock where the file system
// knows none.
[[nodiscard]] Result<std::unique_ptr<BuildLock>> take_lock(const std::filesystem::path& path);

}  // namespace kiln::cache
