// One worker as the host sees it: a process of its own group in a folder of its own, behind one socket.
//
// Invariants:
//  1. The child has descriptors 0 to 2 and no others of the host's, default signal actions, an empty signal
//     mask and exactly the environment that worker_environment() states.
//  2. The host never gets SIGPIPE, and nothing depends on SIGCHLD or on an exit status that it may have
//     collected itself.
//  3. When the object is gone, the process and its folder are gone.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "runtime/compile/protocol.hpp"
#include "runtime/compile/toolchain.hpp"

namespace kiln::compile {

// The whole environment of a worker: nothing of the host's own, so nothing that steers a loader or a
// compiler.
[[nodiscard]] std::vector<std::string> worker_environment(const std::filesystem::path& scratch);

// A fresh folder (0700) below the system's folder for temporary files; removed with what is in it.
class ScratchFolder {
  public:
    [[nodiscard]] static Result<ScratchFolder> make();
    ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    ScratchFolder& operator=(ScratchFolder&&) = delete;
    ~ScratchFolder();
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    void release() { path_.clear(); }

  private:
    explicit ScratchFolder(std::filesystem::path path) : path_(std::move(path)) {}
    std::filesystem::path path_;
};

// Used by one thread at a time.
class WorkerProcess {
  public:
    [[nodiscard]] static Result<std::unique_ptr<WorkerProcess>> start(const Toolchain& toolchain,
                                                                      const std::filesystem::path& worker);
    ~WorkerProcess();
    WorkerProcess(const WorkerProcess&) = delete;
    WorkerProcess& operator=(const WorkerProcess&) = delete;

    // Sends one frame and waits for the reply of the same sequence number. After an error, which is
    // worker_failed and carries the end of the worker's stderr, the worker is of no more use. `subject` is
    // what the message calls the request.
    [[nodiscard]] Result<Reply> exchange(std::string_view frame, std::uint64_t sequence,
                                         std::string_view subject, std::chrono::milliseconds limit);

    // False when it ended, or said something nobody asked for, since the last exchange.
    [[nodiscard]] bool is_idle() const;

    // In a process that was forked from the owner: forgets the worker, which is the owner's to end.
    void abandon();

  private:
    WorkerProcess(ScratchFolder scratch, std::filesystem::path worker, pid_t pid, UniqueFd socket,
                  UniqueFd errors)
        : scratch_(std::move(scratch)),
          worker_(std::move(worker)),
          pid_(pid),
          socket_(std::move(socket)),
          errors_(std::move(errors)) {}

    // One step of waiting: sends what is left of `frame`, takes what has come. False when the other side hung
    // up.
    [[nodiscard]] bool advance(std::string_view& frame, std::string& received,
                               std::chrono::milliseconds wait);
    void take_errors();
    [[nodiscard]] tl::unexpected<Error> failure(std::string_view subject, std::string_view what);
    [[nodiscard]] std::string how_it_ended();
    void kill_group();

    ScratchFolder scratch_;
    const std::filesystem::path worker_;
    pid_t pid_;  // negative once abandoned
    UniqueFd socket_;
    UniqueFd errors_;
    std::string last_words_;  // the end of what it wrote to stderr since the last reply
};

}  // namespace kiln::compile
