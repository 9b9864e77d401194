// kiln-compile: one compile worker. Started by kiln, which talks to it over standard input and output
// (protocol.hpp) and chooses its environment; it needs libstdc++ and the C library only, so that it also runs
// under another dynamic loader.

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "runtime/compile/worker/crash.hpp"
#include "runtime/compile/worker/serve.hpp"

namespace {

using kiln::UniqueFd;
namespace worker = kiln::compile::worker;

constexpr int kExitUsage = 2;
constexpr const char* kUsage =
    "usage: kiln-compile --hiprtc LIBRARY --comgr LIBRARY --scratch FOLDER\n"
    "\n"
    "Compile worker of kiln. Reads framed requests from standard input, writes framed replies to standard\n"
    "output, ends when standard input does. Not meant to be started by hand: kiln finds it beside libkiln\n"
    "or through KILN_WORKER.\n"
    "\n"
    "  --hiprtc   libhiprtc.so.7 or newer, by path\n"
    "  --comgr    the libamd_comgr that belongs to it, by path\n"
    "  --scratch  an empty folder of this worker's own; removed at the end\n";

bool parse(int argc, char** argv, worker::ServeOptions& options) {
    const std::map<std::string, std::filesystem::path*> known{
        {"--hiprtc", &options.hiprtc}, {"--comgr", &options.comgr}, {"--scratch", &options.scratch}};
    for (int i = 1; i < argc; i += 2) {
        const auto option = known.find(argv[i]);
        if (option == known.end() || i + 1 == argc) {
            return false;
        }
        *option->second = argv[i + 1];
    }
    return !options.hiprtc.empty() && !options.comgr.empty() && !options.scratch.empty();
}

// A compiler that dies leaves no core file of half a gigabyte, and one that eats the memory dies before its
// host does.
void be_expendable() {
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};
    ::setrlimit(RLIMIT_CORE, &none);
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
    worker::report_crashes();
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
