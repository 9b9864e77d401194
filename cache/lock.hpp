// The kernel-held locks of a store: of one key, and of one group of entries.
#pragma once

#include <chrono>
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

// The lock of `path`, an empty file that is made where it does not exist (its folder must exist: not_found
// otherwise). Null while somebody else, in this process or another, holds it. An empty lock where the file
// system knows none.
[[nodiscard]] Result<std::unique_ptr<BuildLock>> take_lock(const std::filesystem::path& path);

// Between two looks at a lock that somebody else holds: longer at each, up to a twentieth of a second.
[[nodiscard]] std::chrono::milliseconds next_pause(std::chrono::milliseconds pause);

// The lock of the folder `group` itself: shared by whoever publishes an entry there, held alone by whoever
// removes one. What was looked at is then what is removed, for nobody renames another file over its name in
// between. Null when others hold it for longer than `patience`; an empty lock where there is none to be had.
[[nodiscard]] std::unique_ptr<BuildLock> lock_group(const std::filesystem::path& group, Hold hold,
                                                    std::chrono::milliseconds patience);

// Of who removes: what stays now goes at another time. Of who publishes: a remover that was suspended must
// not hold up a build.
inline constexpr std::chrono::milliseconds kRemoverPatience{100};
inline constexpr std::chrono::milliseconds kWriterPatience{2000};

// True when nobody holds the lock of `path`, be it that nobody can; with Sweep::remove its file is gone then.
// Whoever waits for it meanwhile notices, and makes another.
[[nodiscard]] bool sweep_lock(const std::filesystem::path& path, Sweep sweep);

}  // namespace kiln::cache
