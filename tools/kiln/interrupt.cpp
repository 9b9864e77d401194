#include "tools/kiln/interrupt.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "tools/kiln/command.hpp"

namespace kiln::cli {
namespace {

constexpr char kRequest = 'r';
constexpr char kOver = 'o';

// The pipe of the Grace that a signal is to be told to, or -1. Taken out by the handler, so that only the
// first signal is a request.
std::atomic<int> g_request_pipe{-1};
static_assert(std::atomic<int>::is_always_lock_free, "used in a signal handler");

enum class Output { text, json, begun };
std::atomic<Output> g_output{Output::text};
static_assert(std::atomic<Output>::is_always_lock_free, "used in a signal handler");

void say(int fd, std::string_view message) {
    [[maybe_unused]] const auto ignored = ::write(fd, message.data(), message.size());
}

extern "C" void on_interrupt(int) {
    const int error = errno;
    if (const int pipe = g_request_pipe.exchange(-1); pipe >= 0 && ::write(pipe, &kRequest, 1) == 1) {
        say(STDERR_FILENO, "\nkiln: stopping; interrupt once more to end at once\n");
        errno = error;
        return;
    }
    const Output output = g_output.exchange(Output::text);
    if (output == Output::begun) {
        errno = error;
        return;
    }
    say(STDERR_FILENO, "\nkiln: interrupted\n");
    if (output == Output::json) {
        say(STDOUT_FILENO, "{\"error\": {\"message\": \"interrupted\"}, \"interrupted\": true}\n");
    }
    ::_exit(static_cast<int>(ExitCode::interrupted));
}

}  // namespace

void let_output_arrive() {
    g_output = Output::begun;
}

void catch_interrupts(bool json) {
    g_output = json ? Output::json : Output::text;
    struct sigaction action {};
    action.sa_handler = on_interrupt;
    action.sa_flags = SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGINT, &action, nullptr);
    ::sigaction(SIGTERM, &action, nullptr);
}

Grace::Grace(std::function<void()> on_request) : on_request_(std::move(on_request)) {
    // Without a pipe or a thread to be had, a signal ends the program as it does elsewhere.
    if (::pipe2(pipe_, O_CLOEXEC) != 0) {
        return;
    }
    try {
        thread_ = std::thread([this] { wait(); });
        g_request_pipe = pipe_[1];
    } catch (const std::system_error&) {
    }
}

Grace::~Grace() {
    g_request_pipe = -1;
    if (thread_.joinable()) {
        while (::write(pipe_[1], &kOver, 1) < 0 && errno == EINTR) {
        }
        thread_.join();
    }
    for (const int fd : pipe_) {
        if (fd >= 0) {
            ::close(fd);
        }
    }
}

void Grace::wait() {
    char word = 0;
    while (::read(pipe_[0], &word, 1) == 1 || errno == EINTR) {
        if (word == kOver) {
            return;
        }
        if (std::exchange(word, 0) == kRequest) {
            stop_ = true;
            on_request_();
        }
    }
}

}  // namespace kiln::cli
