// The worker's loop: requests from one descriptor, replies to another, until the first says that nobody asks
// any more.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>

#include "base/file.hpp"
#include "runtime/compile/target_family.hpp"

namespace kiln::compile::worker {

struct ServeOptions {
    // As backend::BackendConfig has them.
    Family family = Family::amdgpu;
    std::filesystem::path rtc;
    std::filesystem::path companion;
    // The working folder and TMPDIR; nobody else's, emptied and removed at the end.
    std::filesystem::path scratch;
    pid_t host = -1;                 // the process that started this one and is served by it
    std::uint64_t memory_limit = 0;  // of this process, in bytes, as the host is told; 0 for none
};

// Says that it is ready, then loads the libraries at the first request that needs them. Returns the process's
// exit status. Ends the process itself when the host or its end of the socket is gone while a compile runs.
[[nodiscard]] int serve(UniqueFd requests, UniqueFd replies, const ServeOptions& options);

}  // namespace kiln::compile::worker
