// A worker's own folder below the system's folder for temporary files, and the sweep of those whose host was
// killed before it could remove them.
//
// Invariants:
//  1. A folder is called kiln-worker-XXXXXX and is locked (flock) by its host for as long as the host lives,
//     where the file system knows locks; only there, and if it belongs to this user, is it ever swept. The
//     kernel drops the lock with the host, so nothing depends on process ids or on age.
//  2. A folder is removed only by its owner, by its worker at the end of it, or by whoever got its lock.
#pragma once

#include <filesystem>
#include <utility>

#include "base/error.hpp"
#include "base/file.hpp"

namespace kiln::compile {

class ScratchFolder {
  public:
    // A fresh folder (0700) in $TMPDIR, else in /tmp. environment names the folder that could not be used.
    [[nodiscard]] static Result<ScratchFolder> make();

    ScratchFolder(ScratchFolder&& other) noexcept
        : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}
    ScratchFolder& operator=(ScratchFolder&&) = delete;
    ~ScratchFolder();  // removes it with what is in it

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    // In a process that was forked from the owner: leaves it to the owner.
    void release() { path_.clear(); }

  private:
    ScratchFolder(std::filesystem::path path, UniqueFd lock)
        : path_(std::move(path)), lock_(std::move(lock)) {}

    std::filesystem::path path_;
    UniqueFd lock_;
};

// Removes the folders of dead hosts beside which make() would make one. What can not be read, locked or
// removed is left alone: another user's, a symbolic link, a living host's, and everything on a file system
// without locks.
void sweep_scratch_folders();

}  // namespace kiln::compile
