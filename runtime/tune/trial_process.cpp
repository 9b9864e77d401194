#include "runtime/tune/trial_process.hpp"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace kiln::tune {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

auto can_not_start(std::string_view what, int error) {
    return fail(ErrorCode::environment, Stage::launch,
                fmt::format("start a process that tries candidates: {}: {}", what, std::strerror(error)));
}

std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> result(words.size() + 1, nullptr);
    std::ranges::transform(words, result.begin(), [](std::string& word) { return word.data(); });
    return result;
}

// A candidate that is refused is a result like another, not news for the log.
std::vector<std::string> environment() {
    std::vector<std::string> result;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        result.emplace_back(*variable);
    }
    if (std::getenv("KILN_LOG") == nullptr) {
        result.emplace_back("KILN_LOG=off");
    }
    return result;
}

class Spawn {
  public:
    Spawn() {
        ::posix_spawnattr_init(&attributes_);
        ::posix_spawn_file_actions_init(&actions_);
    }
    ~Spawn() {
        ::posix_spawnattr_destroy(&attributes_);
        ::posix_spawn_file_actions_destroy(&actions_);
    }
    Spawn(const Spawn&) = delete;
    Spawn& operator=(const Spawn&) = delete;

    // The errno value, 0 for success.
    int run(pid_t& pid, std::vector<std::string> command, int socket) {
        sigset_t all, none;
        ::sigfillset(&all);
        ::sigemptyset(&none);
        for (const int error :
             {::posix_spawnattr_setflags(
                  &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK),
              ::posix_spawnattr_setpgroup(&attributes_, 0),
              ::posix_spawnattr_setsigdefault(&attributes_, &all),
              ::posix_spawnattr_setsigmask(&attributes_, &none),
              ::posix_spawn_file_actions_adddup2(&actions_, socket, STDIN_FILENO),
              ::posix_spawn_file_actions_adddup2(&actions_, socket, STDOUT_FILENO),
              ::posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1)}) {
            if (error != 0) {
                return error;
            }
        }
        std::vector<std::string> variables = environment();
        return ::posix_spawn(&pid, command.front().c_str(), &actions_, &attributes_, pointers(command).data(),
                             pointers(variables).data());
    }

  private:
    posix_spawnattr_t attributes_{};
    posix_spawn_file_actions_t actions_{};
};

}  // namespace

Result<std::unique_ptr<TrialProcess>> TrialProcess::start(const std::vector<std::string>& command) {
    int sockets[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
        return can_not_start("socketpair", errno);
    }
    UniqueFd ours = above_standard_streams(UniqueFd(sockets[0]));
    const UniqueFd theirs = above_standard_streams(UniqueFd(sockets[1]));
    if (!ours.valid() || !theirs.valid()) {
        return can_not_start("descriptors", errno);
    }
    pid_t pid = -1;
    if (const int error = Spawn().run(pid, command, theirs.get()); error != 0) {
        return can_not_start(command.front(), error);
    }
    return std::unique_ptr<TrialProcess>(new TrialProcess(pid, std::move(ours)));
}

TrialProcess::~TrialProcess() {
    if (pid_ > 0) {
        ::kill(-pid_, SIGKILL);
        ::kill(pid_, SIGKILL);  // it may not have come to its group yet
        while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
        }
    }
}

bool TrialProcess::send(std::string_view text) {
    while (!text.empty()) {
        const ssize_t sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) {
            return false;
        }
        text.remove_prefix(sent < 0 ? 0 : static_cast<std::size_t>(sent));
    }
    return true;
}

std::string TrialProcess::how_it_ended() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0) {
        if (errno != EINTR) {
            pid_ = -1;
            return "ended";
        }
    }
    ::kill(-std::exchange(pid_, -1), SIGKILL);  // what it left behind
    return WIFSIGNALED(status)
               ? fmt::format("ended by signal {} ({})", WTERMSIG(status), ::sigdescr_np(WTERMSIG(status)))
               : fmt::format("ended with {}", WEXITSTATUS(status));
}

TrialProcess::Reply TrialProcess::exchange(const std::string& line, milliseconds limit,
                                           const std::atomic<bool>* stop) {
    // How often the flag is looked at: what a signal handler sets wakes nobody.
    constexpr milliseconds kInterval(50);
    const auto deadline = steady_clock::now() + limit;
    if (pid_ < 0 || !send(line + "\n")) {
        return {Reply::How::ended, pid_ < 0 ? "ended" : how_it_ended()};
    }
    while (true) {
        if (const std::size_t end = received_.find('\n'); end != std::string::npos) {
            Reply reply{Reply::How::answered, received_.substr(0, end)};
            received_.erase(0, end + 1);
            return reply;
        }
        if (stop != nullptr && stop->load()) {
            return {Reply::How::stopped, {}};
        }
        const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
        if (left.count() <= 0) {
            return {Reply::How::late, {}};
        }
        pollfd waiting{socket_.get(), POLLIN, 0};
        if (::poll(&waiting, 1, static_cast<int>(std::min(left, kInterval).count())) <= 0) {
            continue;
        }
        char buffer[4096];
        const ssize_t read = ::recv(socket_.get(), buffer, sizeof buffer, 0);
        if (read > 0) {
            received_.append(buffer, static_cast<std::size_t>(read));
        } else if (read == 0 || errno != EINTR) {
            return {Reply::How::ended, how_it_ended()};
        }
    }
}

}  // namespace kiln::tune
