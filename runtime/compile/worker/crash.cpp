#include "runtime/compile/worker/crash.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace kiln::compile::worker {
namespace {

// Plain memory, because a signal handler may touch nothing else.
char g_activity[256] = "starting";
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

void on_fatal_signal(int signal) {
    say("kiln-compile: ");
    say(name_of(signal));
    say(" while ");
    say(g_activity);
    say("\n");
    ::raise(signal);  // SA_RESETHAND has restored the default
}

}  // namespace

void report_crashes() {
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
}

CrashNote::~CrashNote() {
    std::strcpy(g_activity, "waiting for a request");
}

}  // namespace kiln::compile::worker
