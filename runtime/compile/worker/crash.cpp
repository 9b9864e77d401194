#include "runtime/compile/worker/crash.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "runtime/compile/protocol.hpp"

namespace kiln::compile::worker {
namespace {

constexpr int kExitOutOfMemory = 75;

// Plain memory, because a signal handler may touch nothing else.
char g_activity[256] = "starting";
char g_out_of_memory[64];  // what to say then; empty where there is no limit
std::uint64_t g_memory_limit = 0;
std::uint64_t g_page_bytes = 4096;
alignas(16) char g_stack[16384];  // a stack that overflowed can not carry the handler

void say(const char* text) {
    // Nothing can be done about a failure here.
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, std::strlen(text));
}

const char* name_of(int signal) {
    switch (signal) {
        case SIGSEGV:
            return "SIGSEGV";
        case SIGBUS:
            return "SIGBUS";
        case SIGILL:
            return "SIGILL";
        case SIGFPE:
            return "SIGFPE";
        default:
            return "SIGABRT";
    }
}

void say_while(const char* what) {
    say(kWorkerSays);
    say(what);
    say(" while ");
    say(g_activity);
    say("\n");
}

// How much address space is left below the limit.
std::uint64_t room() {
    char text[64] = {};  // pages of address space, then other numbers
    const int fd = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    const ssize_t got = ::read(fd, text, sizeof text - 1);
    ::close(fd);
    std::uint64_t pages = 0;
    for (ssize_t i = 0; i < got && text[i] >= '0' && text[i] <= '9'; ++i) {
        pages = 10 * pages + static_cast<std::uint64_t>(text[i] - '0');
    }
    const std::uint64_t used = pages * g_page_bytes;
    return used < g_memory_limit ? g_memory_limit - used : 0;
}

void on_fatal_signal(int signal) {
    // LLVM aborts when it is refused memory, a single large block with much room left among others; code that
    // does not look whether it was refused meets a null pointer, and a stack that can not grow is a
    // segmentation fault as well.
    const bool refused = errno == ENOMEM;
    if (g_memory_limit != 0 && (refused || room() < g_memory_limit / 16)) {
        say_while(g_out_of_memory);
    } else {
        say_while(name_of(signal));
    }
    ::raise(signal);  // SA_RESETHAND has restored the default
}

void on_refused_memory() {
    say_while(g_memory_limit != 0 ? g_out_of_memory : "the machine has no memory left");
    ::_exit(kExitOutOfMemory);
}

}  // namespace

void report_crashes(std::uint64_t memory_limit) {
    g_memory_limit = memory_limit;
    g_page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    std::snprintf(g_out_of_memory, sizeof g_out_of_memory, "%s %llu MiB", kOutOfMemoryWords,
                  static_cast<unsigned long long>(memory_limit >> 20));
    std::set_new_handler(on_refused_memory);
    stack_t stack{};
    stack.ss_sp = g_stack;
    stack.ss_size = sizeof g_stack;
    ::sigaltstack(&stack, nullptr);
    struct sigaction action {};
    action.sa_handler = on_fatal_signal;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER | SA_ONSTACK);
    for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) {
        ::sigaction(signal, &action, nullptr);
    }
}

CrashNote::CrashNote(std::string_view action, std::string_view subject) {
    std::size_t used = 0;
    for (const auto part : {action, std::string_view(" "), subject}) {
        const std::size_t bytes = std::min(part.size(), sizeof g_activity - 1 - used);
        std::memcpy(g_activity + used, part.data(), bytes);
        used += bytes;
    }
    g_activity[used] = '\0';
    errno = 0;  // of a request before: on_fatal_signal() looks at it
}

CrashNote::~CrashNote() {
    std::strcpy(g_activity, "waiting for a request");
}

}  // namespace kiln::compile::worker
