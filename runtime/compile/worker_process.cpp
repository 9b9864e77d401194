#include "runtime/compile/worker_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "runtime/compile/worker_limits.hpp"

namespace kiln::compile {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kLastWordsBytes = 8192;
constexpr std::size_t kReadBytes = 65536;
constexpr milliseconds kEndingTakes{2000};  // from the end of a worker's socket to the end of its process

auto system_failure(std::string_view what, int error, const std::string& in_the_way = {}) {
    return fail(ErrorCode::environment, Stage::compile,
                fmt::format("start a compile worker: {}: {}{}", what, std::strerror(error), in_the_way));
}

// For the message of a worker that ended, or never began: what may be the reason.
std::string host_limits(std::uint64_t memory_limit) {
    const std::string limits = limits_in_the_way(memory_limit);
    return limits.empty()
               ? limits
               : fmt::format(" (this program runs under limits that no worker can raise: {})", limits);
}

struct Channels {
    UniqueFd host_socket, worker_socket;  // requests one way, replies the other
    UniqueFd host_errors, worker_errors;  // a pipe
};

Result<Channels> open_channels() {
    int sockets[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
        return system_failure("socketpair", errno);
    }
    Channels channels{.host_socket = UniqueFd(sockets[0]),
                      .worker_socket = UniqueFd(sockets[1]),
                      .host_errors = {},
                      .worker_errors = {}};
    int errors[2];
    if (::pipe2(errors, O_CLOEXEC) != 0) {
        return system_failure("pipe", errno);
    }
    channels.host_errors = UniqueFd(errors[0]);
    channels.worker_errors = UniqueFd(errors[1]);
    for (UniqueFd* const end :
         {&channels.host_socket, &channels.worker_socket, &channels.host_errors, &channels.worker_errors}) {
        *end = above_standard_streams(std::move(*end));
        if (!end->valid()) {
            return system_failure("descriptors", errno);
        }
    }
    if (::fcntl(channels.host_errors.get(), F_SETFL, O_NONBLOCK) != 0) {
        return system_failure("descriptors", errno);
    }
    return channels;
}

// posix_spawn with what it takes to hold invariant 1.
class Spawn {
  public:
    Spawn() {
        ::posix_spawnattr_init(&attributes_);
        ::posix_spawn_file_actions_init(&actions_);
    }
    Spawn(const Spawn&) = delete;
    Spawn& operator=(const Spawn&) = delete;
    ~Spawn() {
        ::posix_spawnattr_destroy(&attributes_);
        ::posix_spawn_file_actions_destroy(&actions_);
    }

    // The errno value, 0 for success.
    int run(pid_t& pid, const Channels& channels, const std::filesystem::path& folder,
            const std::vector<std::string>& command, const std::vector<std::string>& environment) {
        sigset_t all;
        sigset_t none;
        ::sigfillset(&all);
        ::sigemptyset(&none);
        const int results[] = {
            ::posix_spawnattr_setflags(
                &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK),
            ::posix_spawnattr_setpgroup(&attributes_, 0),
            ::posix_spawnattr_setsigdefault(&attributes_, &all),
            ::posix_spawnattr_setsigmask(&attributes_, &none),
            ::posix_spawn_file_actions_adddup2(&actions_, channels.worker_socket.get(), STDIN_FILENO),
            ::posix_spawn_file_actions_adddup2(&actions_, channels.worker_socket.get(), STDOUT_FILENO),
            ::posix_spawn_file_actions_adddup2(&actions_, channels.worker_errors.get(), STDERR_FILENO),
            // Descriptors of the host that are not close-on-exec are not the worker's either.
            ::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1),
            ::posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str()),
        };
        for (const int result : results) {
            if (result != 0) {
                return result;
            }
        }
        return ::posix_spawn(&pid, command.front().c_str(), &actions_, &attributes_, pointers(command).data(),
                             pointers(environment).data());
    }

  private:
    static std::vector<char*> pointers(const std::vector<std::string>& texts) {
        std::vector<char*> list;
        for (const auto& text : texts) {
            list.push_back(const_cast<char*>(text.c_str()));
        }
        list.push_back(nullptr);
        return list;
    }

    posix_spawnattr_t attributes_;
    posix_spawn_file_actions_t actions_;
};

std::string describe(const siginfo_t& ending) {
    if (ending.si_code == CLD_EXITED) {
        return fmt::format("ended with status {}", ending.si_status);
    }
    const char* const name = ::sigabbrev_np(ending.si_status);
    return fmt::format("was ended by SIG{}", name != nullptr ? name : std::to_string(ending.si_status));
}

}  // namespace

tl::unexpected<Error> stopped(std::string_view subject) {
    return fail(ErrorCode::worker_failed, Stage::compile, fmt::format("{}: stopped", subject));
}

std::vector<std::string> worker_environment(const std::filesystem::path& scratch) {
    return {
        "PATH=/usr/bin:/bin",        "LC_ALL=C", "HOME=" + scratch.string(), "TMPDIR=" + scratch.string(),
        "AMD_COMGR_CACHE=0",          // the cache is ours to keep,
        "CUDA_CACHE_DISABLE=1",       // NVRTC's as well
        "CLANG_NO_DEFAULT_CONFIG=1",  // no clang.cfg of the machine's
    };
}

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::spawn(const WorkerConfig& config) {
    auto scratch = ScratchFolder::make();
    if (!scratch) {
        return fail(scratch);
    }
    auto channels = open_channels();
    if (!channels) {
        return fail(channels);
    }
    const Toolchain& toolchain = config.toolchain;
    std::vector<std::string> command;
    if (!toolchain.loader.empty()) {
        command = {toolchain.loader.string(), "--library-path", toolchain.folder.string()};
    }
    const bool cuda = toolchain.family == Family::cuda;
    for (const auto& word :
         {config.worker.string(), std::string(cuda ? "--nvrtc" : "--hiprtc"), toolchain.rtc.string(),
          std::string(cuda ? "--builtins" : "--comgr"), toolchain.companion.string(),
          std::string("--scratch"), scratch->path().string(), std::string("--host"),
          std::to_string(::getpid()), std::string("--memory-limit"), std::to_string(config.memory_limit)}) {
        command.push_back(word);
    }
    const std::vector<std::string> environment = worker_environment(scratch->path());
    const std::filesystem::path folder = scratch->path();
    // Before there is a process, so that nothing that fails can lose one.
    std::unique_ptr<WorkerProcess> worker(new WorkerProcess(
        config, std::move(*scratch), std::move(channels->host_socket), std::move(channels->host_errors)));
    if (const int error = Spawn().run(worker->pid_, *channels, folder, command, environment); error != 0) {
        worker->pid_ = -1;
        return system_failure(config.worker.string(), error, host_limits(config.memory_limit));
    }
    // Before anybody could have collected the process, but for a host that ignores SIGCHLD.
    worker->ending_ =
        above_standard_streams(UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, worker->pid_, 0))));
    return worker;
}

WorkerProcess::WorkerProcess(const WorkerConfig& config, ScratchFolder scratch, UniqueFd socket,
                             UniqueFd errors)
    : scratch_(std::move(scratch)),
      worker_(config.worker),
      start_limit_(config.start_limit),
      time_limit_(config.time_limit),
      memory_limit_(config.memory_limit),
      socket_(std::move(socket)),
      errors_(std::move(errors)) {}

WorkerProcess::~WorkerProcess() {
    if (pid_ > 0) {
        kill_group();
        siginfo_t ending{};
        while (wait(ending, WEXITED) != 0 && errno == EINTR) {
        }
    }
}

void WorkerProcess::abandon() {
    pid_ = -1;
    scratch_.release();
}

bool WorkerProcess::is_idle() const {
    pollfd watched[2] = {{.fd = socket_.get(), .events = POLLIN | POLLRDHUP, .revents = 0},
                         {.fd = ending_.get(), .events = POLLIN, .revents = 0}};
    return ::poll(watched, 2, 0) == 0;
}

void WorkerProcess::interrupt() {
    interrupted_ = true;
    kill_group();
}

Result<void> WorkerProcess::await_ready(std::string_view subject) {
    const auto refuse = [&](std::string_view what) {
        return fail(ErrorCode::environment, Stage::compile,
                    fmt::format("compile worker {} {}: expected the kiln-compile of kiln {}",
                                worker_.string(), what, own_version()));
    };
    std::string received;
    std::string_view nothing;
    const auto head =
        receive(nothing, 0, received, fmt::format("start of a compile worker of kiln {}", own_version()),
                start_limit_);
    if (!head) {
        if (interrupted_) {
            return stopped(subject);
        }
        Error error = head.error();
        error.code = ErrorCode::environment;
        return tl::unexpected<Error>(std::move(error));
    }
    const auto ready = decode_reply(head->kind, std::string_view(received).substr(kFrameHeadBytes));
    if (!ready || ready->kind != ReplyKind::ready) {
        kill_group();
        return refuse("does not say what it is");
    }
    if (ready->version != own_version()) {
        kill_group();
        return refuse(fmt::format("is of kiln {}", ready->version));
    }
    memory_bound_ = ready->memory_limit;
    return {};
}

Result<FrameHead> WorkerProcess::receive(std::string_view& frame, std::uint64_t sequence,
                                         std::string& received, std::string_view subject,
                                         milliseconds limit) {
    const auto deadline = steady_clock::now() + std::min(limit, kForEver);
    FrameHead head;
    std::uint64_t expected = kFrameHeadBytes;
    while (received.size() < expected) {
        const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
        if (left <= milliseconds::zero()) {
            return failure(subject, fmt::format("did not answer within {} ms and was ended", limit.count()));
        }
        if (!advance(frame, received, left)) {
            return failure(subject, how_it_ended());
        }
        if (received.size() >= kFrameHeadBytes && expected == kFrameHeadBytes) {
            const auto decoded = decode_head(std::string_view(received).substr(0, kFrameHeadBytes));
            if (!decoded || decoded->sequence != sequence) {
                return failure(subject,
                               decoded ? "answered another request" : "answered what is not of the protocol");
            }
            head = *decoded;
            expected += head.body_bytes;
        }
    }
    if (received.size() > expected || !frame.empty()) {
        return failure(subject, "answered more than one reply, or before it was asked");
    }
    return head;
}

Result<Reply> WorkerProcess::exchange(std::string_view frame, std::uint64_t sequence,
                                      std::string_view subject) {
    std::string received;
    last_words_.clear();
    const auto head = receive(frame, sequence, received, subject, time_limit_);
    if (!head) {
        return tl::unexpected<Error>(head.error());
    }
    auto reply = decode_reply(head->kind, std::string_view(received).substr(kFrameHeadBytes));
    if (!reply) {
        return failure(subject, reply.error().message);
    }
    return reply;
}

bool WorkerProcess::advance(std::string_view& frame, std::string& received, milliseconds wait) {
    pollfd watched[3] = {{.fd = socket_.get(),
                          .events = static_cast<short>(frame.empty() ? POLLIN : POLLIN | POLLOUT),
                          .revents = 0},
                         {.fd = errors_.get(), .events = POLLIN, .revents = 0},
                         {.fd = ending_.get(), .events = POLLIN, .revents = 0}};
    const auto longest = std::min<milliseconds::rep>(wait.count(), 60'000);
    if (::poll(watched, 3, static_cast<int>(longest)) <= 0) {
        return true;  // the time is up, or a signal came: the caller looks at the clock
    }
    if (watched[1].revents != 0) {
        take_errors();
    }
    if ((watched[0].revents & POLLIN) != 0) {
        const std::size_t used = received.size();
        received.resize(used + kReadBytes);
        const ssize_t got = ::recv(socket_.get(), received.data() + used, kReadBytes, MSG_DONTWAIT);
        received.resize(used + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
        return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
    }
    if ((watched[0].revents & POLLOUT) != 0 && watched[2].revents == 0) {
        const ssize_t sent = ::send(socket_.get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        frame.remove_prefix(static_cast<std::size_t>(sent));
        return true;
    }
    return watched[0].revents == 0 && watched[2].revents == 0;
}

void WorkerProcess::take_errors() {
    char buffer[4096];
    ssize_t got = -1;
    // As much as a pipe holds: one that writes faster than this reads must not keep the caller from its
    // clock.
    for (int i = 0; i < 16 && (got = ::read(errors_.get(), buffer, sizeof buffer)) > 0; ++i) {
        last_words_.append(buffer, static_cast<std::size_t>(got));
        if (last_words_.size() > 2 * kLastWordsBytes) {
            last_words_.erase(0, last_words_.size() - kLastWordsBytes);
        }
    }
    if (got == 0) {
        errors_.reset();  // poll skips negative descriptors
    }
}

tl::unexpected<Error> WorkerProcess::failure(std::string_view subject, std::string_view what) {
    if (interrupted_) {
        return stopped(subject);
    }
    kill_group();
    take_errors();
    if (last_words_.size() > kLastWordsBytes) {
        last_words_.erase(0, last_words_.size() - kLastWordsBytes);
    }
    std::string said(what);
    if (last_words_.find(fmt::format("{}{}", kWorkerSays, kOutOfMemoryWords)) != std::string::npos) {
        said = fmt::format("{} {} MiB and {}", kOutOfMemoryWords, memory_bound_ >> 20, what);
    }
    std::string message = fmt::format("{}: compile worker {} {}", subject, worker_.string(), said);
    if (!last_words_.empty()) {
        message += "; the end of its log:\n" + last_words_;
    }
    return fail(ErrorCode::worker_failed, Stage::compile, std::move(message));
}

std::string WorkerProcess::how_it_ended() {
    // The socket closes a moment before the process is gone; how it went is only known after that.
    const auto deadline = steady_clock::now() + kEndingTakes;
    while (steady_clock::now() < deadline) {
        siginfo_t ending{};
        const int result = wait(ending, WEXITED | WNOHANG | WNOWAIT);
        if (result == 0 && ending.si_pid == pid_) {
            return describe(ending) + host_limits(memory_limit_);
        }
        if (result != 0 && errno == ECHILD) {
            return "ended (how is not known: this program collects its children itself)" +
                   host_limits(memory_limit_);
        }
        std::this_thread::sleep_for(milliseconds(1));
    }
    return "closed its output and was ended";
}

int WorkerProcess::wait(siginfo_t& ending, int options) const {
    // By descriptor, because the number may be another child's once somebody collected the process.
    if (ending_.valid()) {
        const int result = ::waitid(P_PIDFD, static_cast<id_t>(ending_.get()), &ending, options);
        if (result == 0 || errno != EINVAL) {  // a kernel that knows the descriptor but not this use of it
            return result;
        }
    }
    return ::waitid(P_PID, static_cast<id_t>(pid_), &ending, options);
}

bool WorkerProcess::has_its_number() const {
    siginfo_t ending{};
    if (wait(ending, WEXITED | WNOHANG | WNOWAIT) == 0) {
        return true;  // nobody has collected it
    }
    // It was collected, or is about to be, by the host or by a kernel that is told to.
    if (ending_.valid() && ::syscall(SYS_pidfd_send_signal, ending_.get(), 0, nullptr, 0) == 0) {
        return true;
    }
    // The kernel gives no number away that a group still has. A stranger's group has a leader of that number.
    return ::kill(pid_, 0) != 0 && errno == ESRCH;
}

void WorkerProcess::kill_group() {
    // Before the process is collected here, so that the group keeps its number while it is ended.
    if (pid_ > 0 && has_its_number()) {
        ::kill(-pid_, SIGKILL);
    }
}

}  // namespace kiln::compile
