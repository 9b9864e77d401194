// The worker's loop: requests from one descriptor, replies to another, until the first says that nobody asks
// any more.
#pragma once

#include <filesystem>

#include "base/file.hpp"

namespace kiln::compile::worker {

struct ServeOptions {
    std::filesystem::path hiprtc;  // libhiprtc.so.7
    std::filesystem::path comgr;   // libamd_comgr.so.3
    // The working folder and TMPDIR; nobody else's, emptied and removed at the end.
    std::filesystem::path scratch;
};

// Loads the libraries at the first request that needs them. Returns the process's exit status. Ends the
// process itself when the other side is gone while a compile runs.
[[nodiscard]] int serve(UniqueFd requests, UniqueFd replies, const ServeOptions& options);

}  // namespace kiln::compile::worker
