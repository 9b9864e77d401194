#include "cache/lock.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "base/log.hpp"

namespace kiln::cache {
namespace {

constexpr std::chrono::milliseconds kLongestPause{50};

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

Result<std::unique_ptr<BuildLock>> take_lock(const std::filesystem::path& path) {
    while (true) {
        UniqueFd fd = above_standard_streams(
            UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)));
        if (!fd.valid()) {
            const int error = errno;
            return fail(error == ENOENT ? ErrorCode::not_found : ErrorCode::io, Stage::cache,
                        system_message("open", path, error));
        }
        switch (lock_file(fd, Wait::no)) {
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

std::chrono::milliseconds next_pause(std::chrono::milliseconds pause) {
    return std::min(2 * pause, kLongestPause);
}

std::unique_ptr<BuildLock> lock_group(const std::filesystem::path& group, Hold hold,
                                      std::chrono::milliseconds patience) {
    const auto end = std::chrono::steady_clock::now() + patience;
    for (std::chrono::milliseconds pause(1);; pause = next_pause(pause)) {
        UniqueFd fd(::open(group.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
        const auto outcome = fd.valid() ? lock_file(fd, Wait::no, hold) : LockOutcome::failed;
        if (outcome == LockOutcome::held && still_named(fd, group)) {
            return std::make_unique<FileLock>(std::move(fd));
        }
        if (outcome == LockOutcome::unsupported || outcome == LockOutcome::failed) {
            return std::make_unique<BuildLock>();
        }
        if (std::chrono::steady_clock::now() >= end) {
            return nullptr;
        }
        std::this_thread::sleep_for(pause);
    }
}

bool sweep_lock(const std::filesystem::path& path, Sweep sweep) {
    const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    const auto outcome = fd.valid() ? lock_file(fd, Wait::no) : LockOutcome::failed;
    return (outcome == LockOutcome::held || outcome == LockOutcome::unsupported) &&
           (sweep == Sweep::look || (still_named(fd, path) && ::unlink(path.c_str()) == 0));
}

}  // namespace kiln::cache
