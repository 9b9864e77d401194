#include "base/file_lock.hpp"

#include <sys/file.h>

#include <cerrno>

namespace kiln {

LockOutcome lock_file(const UniqueFd& fd, Wait wait, Hold hold) {
    const int operation = (hold == Hold::alone ? LOCK_EX : LOCK_SH) | (wait == Wait::no ? LOCK_NB : 0);
    while (::flock(fd.get(), operation) != 0) {
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
