// One worker as the host sees it: a process of its own group in a folder of its own, behind one socket.
//
// Invariants:
//  1. The child has descriptors 0 to 2 and no others of the host's, default signal actions, an empty signal
//     mask and exactly the environment that worker_environment() states.
//  2. The host never gets SIGPIPE, and nothing depends on SIGCHLD or on an exit status that it may have
//     collected itself.
//  3. When the object is gone, the process, the children that it left and its folder are gone.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "runtime/compile/protocol.hpp"
#include "runtime/compile/scratch_folder.hpp"
#include "runtime/compile/toolchain.hpp"

namespace kiln::compile {

// The whole environment of a worker: nothing of the host's own, so nothing that steers a loader or a
// compiler.
[[nodiscard]] std::vector<std::string> worker_environment(const std::filesystem::path& scratch);

// No limit of time is taken to be longer, so that one can be added to a clock.
constexpr std::chrono::milliseconds kForEver = std::chrono::hours(24 * 365);

// The answer to a request that was ended on purpose: worker_failed.
[[nodiscard]] tl::unexpected<Error> stopped(std::string_view subject);

struct WorkerConfig {
    Toolchain toolchain;
    std::filesystem::path worker;
    std::chrono::milliseconds start_limit{};  // until it says that it is ready
    std::chrono::milliseconds time_limit{};   // of each request
    std::uint64_t memory_limit = 0;           // of the process, in bytes of address space; 0 for none
};

// Used by one thread at a time, but for interrupt().
class WorkerProcess {
  public:
    // Spawns the program; it has said nothing yet.
    [[nodiscard]] static Result<std::unique_ptr<WorkerProcess>> spawn(const WorkerConfig& config);
    ~WorkerProcess();
    WorkerProcess(const WorkerProcess&) = delete;
    WorkerProcess& operator=(const WorkerProcess&) = delete;

    // Waits until it has said that it is ready, and of this kiln's own version; once, before any exchange.
    // environment when it does not: another program, another version, or one that can not run here;
    // worker_failed when it was interrupted.
    [[nodiscard]] Result<void> await_ready(std::string_view subject);

    // Sends one frame and waits for the reply of the same sequence number. After an error, which is
    // worker_failed and carries the end of the worker's stderr, the worker is of no more use. `subject` is
    // what the message calls the request.
    [[nodiscard]] Result<Reply> exchange(std::string_view frame, std::uint64_t sequence,
                                         std::string_view subject);

    // False when it ended, or said something nobody asked for, since the last exchange.
    [[nodiscard]] bool is_idle() const;

    // Ends the process; an exchange that waits for it fails, and says that it was stopped. Any thread.
    void interrupt();

    // In a process that was forked from the owner: forgets the worker, which is the owner's to end.
    void abandon();

  private:
    WorkerProcess(const WorkerConfig& config, ScratchFolder scratch, UniqueFd socket, UniqueFd errors);

    // One whole frame of the other side, into `received`.
    [[nodiscard]] Result<FrameHead> receive(std::string_view& frame, std::uint64_t sequence,
                                            std::string& received, std::string_view subject,
                                            std::chrono::milliseconds limit);
    // One step of waiting: sends what is left of `frame`, takes what has come. False when the other side hung
    // up, or has ended and left its socket to a child.
    [[nodiscard]] bool advance(std::string_view& frame, std::string& received,
                               std::chrono::milliseconds wait);
    void take_errors();
    [[nodiscard]] tl::unexpected<Error> failure(std::string_view subject, std::string_view what);
    [[nodiscard]] std::string how_it_ended();
    // As waitid, of this very process.
    [[nodiscard]] int wait(siginfo_t& ending, int options) const;
    // Whether pid_ still names this process, or the group that it left behind, and no stranger.
    [[nodiscard]] bool has_its_number() const;
    void kill_group();

    ScratchFolder scratch_;
    const std::filesystem::path worker_;
    const std::chrono::milliseconds start_limit_;
    const std::chrono::milliseconds time_limit_;
    const std::uint64_t memory_limit_;  // as asked for
    std::uint64_t memory_bound_ = 0;    // as the worker says that it has it
    pid_t pid_ = -1;                    // negative before it runs, and once abandoned
    UniqueFd socket_;
    UniqueFd errors_;
    UniqueFd ending_;  // readable once the process has ended; invalid where the kernel has no such thing
    std::string last_words_;  // the end of what it wrote to stderr since the last reply
    std::atomic<bool> interrupted_{false};
};

}  // namespace kiln::compile
