// The kernel-held lock of one key.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/file_lock.hpp"
#include "cache/store.hpp"

namespace kiln::cache {

// Under FOLDER: the lock of whoever evicts.
inline constexpr std::string_view kEvictLock = "locks/evict.lock";

// Blocks until nobody else, in this process or another, holds the lock of `path`, an empty file that is made
// where it does not exist (its folder must exist: not_found otherwise). With Wait::no, null instead of
// waiting. An empty lock where the file system knows none.
[[nodiscard]] Result<std::unique_ptr<BuildLock>> take_lock(const std::filesystem::path& path, Wait wait);

// True when nobody holds the lock of `path`; with Sweep::remove its file is gone then. Whoever waits for it
// meanwhile notices, and makes another.
[[nodiscard]] bool sweep_lock(const std::filesystem::path& path, Sweep sweep);

}  // namespace kiln::cache
