#include "cache/lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/log.hpp"

namespace kiln::cache {
namespace {

// A child that was forked while the lock was held has a descriptor of the same open file, so the owner
// unlocks explicitly instead of only closing its own.
class FileLock : public BuildLock {
  public:
    explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
    ~FileLock() override { ::flock(fd_.get(), LOCK_UN); }

  private:
    UniqueFd fd_;
};

// True while `path` still names the open file: one that was removed meanwhile excludes nobody who comes
// later.
bool still_named(const UniqueFd& fd, const std::filesystem::path& path) {
    struct stat open_file {};
    struct stat named {};
    return ::fstat(fd.get(), &open_file) == 0 && ::stat(path.c_str(), &named) == 0 &&
           open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

}  // namespace

Result<std::unique_ptr<BuildLock>> take_lock(const std::filesystem::path& path, Wait wait) {
    while (true) {
        UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!fd.valid()) {
            const int error = errno;
            return fail(error == ENOENT ? ErrorCode::not_found : ErrorCode::io, Stage::cache,
                        system_message("open", path, error));
        }
        switch (lock_file(fd, wait)) {
            case LockOutcome::held:
                break;
            case LockOutcome::busy:
                return nullptr;
            case LockOutcome::unsupported:
                log::debug("{}", system_message("lock", path, errno));
                return std::make_unique<BuildLock>();
            case LockOutcome::failed:
                return fail(ErrorCode::io, Stage::cache, system_message("lock", path, errno));
        }
        if (still_named(fd, path)) {
            return std::make_unique<FileLock>(std::move(fd));
        }
    }
}

bool sweep_lock(const std::filesystem::path& path, Sweep sweep) {
    const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    return fd.valid() && lock_file(fd, Wait::no) == LockOutcome::held &&
           (sweep == Sweep::look || (still_named(fd, path) && ::unlink(path.c_str()) == 0));
}

}  // namespace kiln::cache
