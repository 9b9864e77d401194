#include "cache/lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/file.hpp"
#include "base/log.hpp"

namespace kiln::cache {
namespace {

// flock() belongs to the open file, not to the process: two threads that each open the file exclude each
// other, and the kernel frees the lock when the last descriptor of that open is gone. A child that was forked
// while the lock was held has such a descriptor too, so the owner unlocks explicitly instead of only closing
// its own.
class FileLock : public BuildLock {
  public:
    explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
    ~FileLock() override { ::flock(fd_.get(), LOCK_UN); }

  private:
    UniqueFd fd_;
};

bool means_no_locks(int error) {
    return error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP || error == EINVAL;
}

// True while `path` still names the open file: one that was wiped meanwhile excludes nobody who comes later.
bool still_named(const UniqueFd& fd, const std::filesystem::path& path) {
    struct stat open_file {};
    struct stat named {};
    return ::fstat(fd.get(), &open_file) == 0 && ::stat(path.c_str(), &named) == 0 &&
           open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

}  // namespace

Result<std::unique_ptr<BuildLock>> take_lock(const std::filesystem::path& path) {
    while (true) {
        UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!fd.valid()) {
            const int error = errno;
            return fail(error == ENOENT ? ErrorCode::not_found : ErrorCode::io, Stage::cache,
                        system_message("open", path, error));
        }
        int outcome = 0;
        do {
            outcome = ::flock(fd.get(), LOCK_EX);
        } while (outcome != 0 && errno == EINTR);
        if (outcome != 0 && means_no_locks(errno)) {
            log::debug("{}", system_message("lock", path, errno));
            return std::make_unique<BuildLock>();
        }
        if (outcome != 0) {
            return fail(ErrorCode::io, Stage::cache, system_message("lock", path, errno));
        }
        if (still_named(fd, path)) {
            return std::make_unique<FileLock>(std::move(fd));
        }
    }
}

}  // namespace kiln::cache
