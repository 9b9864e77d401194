// Last words: when the compiler takes the process down, stderr says by which signal and over what, for the
// host to report.
#pragma once

#include <cstdint>
#include <string_view>

namespace kiln::compile::worker {

// Says so on stderr at a fatal signal, then dies of it as it would have anyway. A process that dies because
// it may not have more than `memory_limit` bytes (0: no limit) says that, in the words that the host looks
// for (kOutOfMemoryWords). Once, at the start.
void report_crashes(std::uint64_t memory_limit);

// What the process is at, from construction to destruction. One at a time.
class CrashNote {
  public:
    CrashNote(std::string_view action, std::string_view subject);
    CrashNote(const CrashNote&) = delete;
    CrashNote& operator=(const CrashNote&) = delete;
    ~CrashNote();
};

}  // namespace kiln::compile::worker
