// Last words: when the compiler takes the process down, stderr says by which signal and over what, for the
// host to report.
#pragma once

#include <string_view>

namespace kiln::compile::worker {

// Says so on stderr at a fatal signal, then dies of it as it would have anyway. Once, at the start.
void report_crashes();

// What the process is at, from construction to destruction. One at a time.
class CrashNote {
  public:
    CrashNote(std::string_view action, std::string_view subject);
    CrashNote(const CrashNote&) = delete;
    CrashNote& operator=(const CrashNote&) = delete;
    ~CrashNote();
};

}  // namespace kiln::compile::worker
