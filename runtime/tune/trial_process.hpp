// A process that tries candidates: one that crashes or hangs takes nothing along.
//
// It is asked and answers by lines of text on one socket, which is its standard input and output; its
// standard error is ours. It has a process group of its own, so that a Ctrl-C at the terminal is ours alone
// to handle.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"

namespace kiln::tune {

// Used by one thread.
class TrialProcess {
  public:
    // `command` is a path and its arguments. The process gets this one's environment, with a log that is off
    // where nobody asked for one. environment when it can not be started.
    [[nodiscard]] static Result<std::unique_ptr<TrialProcess>> start(const std::vector<std::string>& command);
    // Ends it, and what it started.
    ~TrialProcess();
    TrialProcess(const TrialProcess&) = delete;
    TrialProcess& operator=(const TrialProcess&) = delete;

    struct Reply {
        enum class How {
            answered,
            late,     // no answer within the limit
            ended,    // the process is no more; `text` says how it ended
            stopped,  // the flag was set
        };
        How how = How::ended;
        std::string text;  // the answer, without its end of line
    };
    // One line there, one back. After anything but an answer the process is of no more use.
    [[nodiscard]] Reply exchange(const std::string& line, std::chrono::milliseconds limit,
                                 const std::atomic<bool>* stop);

  private:
    TrialProcess(pid_t pid, UniqueFd socket) : pid_(pid), socket_(std::move(socket)) {}

    [[nodiscard]] bool send(std::string_view text);
    [[nodiscard]] std::string how_it_ended();

    pid_t pid_;  // -1 once collected
    UniqueFd socket_;
    std::string received_;  // beyond the last answer
};

}  // namespace kiln::tune
