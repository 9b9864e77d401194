// The kernel's lock on an open file: gone when its holder closes the file or dies.
//
// flock() belongs to the open file, not to the process: two threads that each open the file exclude each
// other, and a child that was forked while it was held holds it too until it closes or executes.
#pragma once

#include "base/file.hpp"

namespace kiln {

enum class Wait { for_ever, no };
enum class Hold { alone, shared };

enum class LockOutcome {
    held,
    busy,         // somebody else holds it; only with Wait::no
    unsupported,  // the file system knows no locks, or the kernel has none left
    failed,       // errno says why
};

// Taken up again after a signal. Of a file, or of a folder that is open for reading.
[[nodiscard]] LockOutcome lock_file(const UniqueFd& fd, Wait wait, Hold hold = Hold::alone);

}  // namespace kiln
