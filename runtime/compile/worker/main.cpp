// kiln-compile: one compile worker. Started by kiln, which talks to it over standard input and output
// (protocol.hpp) and chooses its environment; it needs libstdc++ and the C library only, so that it also runs
// under another dynamic loader.

#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <string>

#include "runtime/compile/worker/crash.hpp"
#include "runtime/compile/worker/limits.hpp"
#include "runtime/compile/worker/serve.hpp"

namespace {

using kiln::UniqueFd;
namespace worker = kiln::compile::worker;

constexpr int kExitUsage = 2;
constexpr const char* kUsage =
    "usage: kiln-compile (--hiprtc LIBRARY --comgr LIBRARY | --nvrtc LIBRARY --builtins LIBRARY)\n"
    "                    --scratch FOLDER --host PID --memory-limit BYTES\n"
    "\n"
    "Compile worker of kiln. Reads framed requests from standard input, writes framed replies to standard\n"
    "output, ends when standard input does. Not meant to be started by hand: kiln finds it beside libkiln\n"
    "or through KILN_WORKER.\n"
    "\n"
    "  --hiprtc        libhiprtc.so.7 or newer, by path\n"
    "  --comgr         the libamd_comgr that belongs to it, by path\n"
    "  --nvrtc         libnvrtc.so.12 or newer, by path\n"
    "  --builtins      the libnvrtc-builtins that belongs to it, by path\n"
    "  --scratch       an empty folder of this worker's own; removed at the end\n"
    "  --host          the process that starts this one: when it ends, so does this\n"
    "  --memory-limit  address space that this process may take; 0 for as much as there is\n";

template <class Number>
bool parse_number(const char* text, Number& number) {
    const char* const end = text + std::strlen(text);
    const auto [rest, fault] = std::from_chars(text, end, number);
    return fault == std::errc() && rest == end;
}

bool parse(int argc, char** argv, worker::ServeOptions& options) {
    using kiln::compile::Family;
    struct LibraryOption {
        Family family;
        std::filesystem::path* path;
    };
    const std::map<std::string, LibraryOption> libraries{{"--hiprtc", {Family::amdgpu, &options.rtc}},
                                                         {"--comgr", {Family::amdgpu, &options.companion}},
                                                         {"--nvrtc", {Family::cuda, &options.rtc}},
                                                         {"--builtins", {Family::cuda, &options.companion}}};
    std::optional<Family> family;
    bool limit_given = false;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc) {
            return false;
        }
        const std::string option = argv[i];
        const char* const value = argv[i + 1];
        if (const auto library = libraries.find(option); library != libraries.end()) {
            if (family.value_or(library->second.family) != library->second.family) {
                return false;  // a pair of two toolchains
            }
            family = library->second.family;
            *library->second.path = value;
        } else if (option == "--scratch") {
            options.scratch = value;
        } else if (option == "--host") {
            if (!parse_number(value, options.host)) {
                return false;
            }
        } else if (option == "--memory-limit") {
            limit_given = parse_number(value, options.memory_limit);
        } else {
            return false;
        }
    }
    options.family = family.value_or(Family::amdgpu);
    return !options.rtc.empty() && !options.companion.empty() && !options.scratch.empty() &&
           options.host > 0 && limit_given;
}

// A compiler that eats the memory of the machine dies before its host does.
void be_expendable() {
    if (const UniqueFd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)); score.valid()) {
        [[maybe_unused]] const auto written = ::write(score.get(), "1000", 4);  // best effort
    }
}

// Puts the protocol out of reach of anything that prints to standard output or reads standard input.
bool take_over(UniqueFd& requests, UniqueFd& replies) {
    requests = UniqueFd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
    replies = UniqueFd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
    const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    return requests.valid() && replies.valid() && nothing.valid() &&
           ::dup2(nothing.get(), STDIN_FILENO) == STDIN_FILENO &&
           ::dup2(STDERR_FILENO, STDOUT_FILENO) == STDOUT_FILENO;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 2 && std::strcmp(argv[1], "--help") == 0) {
        std::fputs(kUsage, stdout);
        return 0;
    }
    worker::ServeOptions options;
    if (!parse(argc, argv, options)) {
        std::fputs(kUsage, stderr);
        return kExitUsage;
    }
    be_expendable();
    options.memory_limit = worker::settle_limits(options.memory_limit);
    worker::report_crashes(options.memory_limit);
    std::signal(SIGPIPE, SIG_IGN);  // a host that is gone is seen by the write, and leaves a folder to remove
    UniqueFd requests;
    UniqueFd replies;
    if (!take_over(requests, replies)) {
        std::perror("kiln-compile: standard input and output");
        return kExitUsage;
    }
    const int status = worker::serve(std::move(requests), std::move(replies), options);
    std::fflush(stderr);
    ::_exit(status);  // LLVM's global destructors have nothing to say, and the watching thread may still run
}
