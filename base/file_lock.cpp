#include "base/file_lock.hpp"

#include <sys/file.h>

#include <cerrno>

namespace kiln {

LockOutcome lock_file(const UniqueFd& fd, Wait wait) {
    while (::flock(fd.get(), wait == Wait::no ? LOCK_EX | LOCK_NB : LOCK_EX) != 0) {
        switch (errno) {
            case EINTR:
                continue;
            case EWOULDBLOCK:
                return LockOutcome::busy;
            case ENOLCK:
            case ENOSYS:
            case EOPNOTSUPP:
            case EINVAL:
                return LockOutcome::unsupported;
            default:
                return LockOutcome::failed;
        }
    }
    return LockOutcome::held;
}

}  // namespace kiln
