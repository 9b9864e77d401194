#include "runtime/compile/cuda_disassembly.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.hpp"
#include "runtime/compile/scratch_folder.hpp"
#include "runtime/compile/toolchain.hpp"
#include "runtime/compile/worker_process.hpp"

namespace kiln::compile {
namespace {

namespace fs = std::filesystem;

constexpr int kTimeLimitMs = 120'000;
constexpr mode_t kOwnerOnly = 0600;

struct Program {
    const char* name;
    const char* option;
};
constexpr Program kPrograms[] = {{"nvdisasm", "--print-code"}, {"cuobjdump", "--dump-sass"}};

auto failed(std::string message) {
    return fail(ErrorCode::environment, Stage::compile, "disassemble a cubin: " + std::move(message));
}

Result<std::vector<std::string>> find_command(const CompilerConfig& config) {
    const std::vector<fs::path> folders = cuda_program_folders(config);
    for (const Program& program : kPrograms) {
        for (const fs::path& folder : folders) {
            const fs::path path = folder / program.name;
            std::error_code error;
            if (fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0) {
                return std::vector<std::string>{path.string(), program.option};
            }
        }
    }
    std::vector<std::string> looked_in;
    looked_in.reserve(folders.size());
    for (const fs::path& folder : folders) {
        looked_in.push_back(folder.string());
    }
    return failed(
        fmt::format("expected nvdisasm or cuobjdump of a CUDA toolkit in one of {}; "
                    "KILN_CUDA_PREFIX names a toolkit elsewhere",
                    fmt::join(looked_in, ", ")));
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> list;
    list.reserve(texts.size() + 1);
    for (std::string& text : texts) {
        list.push_back(text.data());
    }
    list.push_back(nullptr);
    return list;
}

// Starts it with both of its outputs in files of the scratch folder. The errno value, 0 for success.
int start(pid_t& pid, std::vector<std::string> command, const fs::path& scratch) {
    std::vector<std::string> environment = worker_environment(scratch);
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    sigset_t all;
    sigset_t none;
    ::sigfillset(&all);
    ::sigemptyset(&none);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    ::posix_spawnattr_setsigdefault(&attributes, &all);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    int error = ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    for (const auto& [fd, file] : {std::pair(STDOUT_FILENO, "out"), std::pair(STDERR_FILENO, "err")}) {
        const int opened = ::posix_spawn_file_actions_addopen(&actions, fd, (scratch / file).c_str(),
                                                              O_WRONLY | O_CREAT | O_TRUNC, kOwnerOnly);
        error = error != 0 ? error : opened;
    }
    if (error == 0) {
        error = ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    }
    if (error == 0) {
        error = ::posix_spawn(&pid, command.front().c_str(), &actions, &attributes, pointers(command).data(),
                              pointers(environment).data());
    }
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
    return error;
}

// How it ended; empty when it ended well, or when this program collects its children itself and nobody knows.
std::string await(pid_t pid) {
    const UniqueFd ending(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    pollfd watched{.fd = ending.get(), .events = POLLIN, .revents = 0};
    int ready = 1;  // a kernel without such descriptors waits without a limit
    while (ending.valid() && (ready = ::poll(&watched, 1, kTimeLimitMs)) < 0 && errno == EINTR) {
    }
    if (ready == 0) {
        ::kill(pid, SIGKILL);
    }
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            return ready == 0 ? "took too long" : "";
        }
    }
    if (ready == 0) {
        return fmt::format("did not end within {} s", kTimeLimitMs / 1000);
    }
    if (WIFEXITED(status)) {
        return WEXITSTATUS(status) == 0 ? "" : fmt::format("ended with status {}", WEXITSTATUS(status));
    }
    return fmt::format("was ended by signal {}", WTERMSIG(status));
}

}  // namespace

Result<std::string> disassemble_cubin(ByteView cubin, const CompilerConfig& config) {
    auto command = find_command(config);
    if (!command) {
        return fail(command);
    }
    const std::string program = command->front();
    auto scratch = ScratchFolder::make();
    if (!scratch) {
        return fail(scratch);
    }
    const fs::path file = scratch->path() / "code.cubin";
    if (auto written = publish_file(file, cubin, Stage::compile); !written) {
        return fail(written);
    }
    command->push_back(file.string());
    pid_t pid = -1;
    if (const int error = start(pid, *std::move(command), scratch->path()); error != 0) {
        return failed(fmt::format("start {}: {}", program, std::strerror(error)));
    }
    const std::string ending = await(pid);
    auto printed = read_text_file(scratch->path() / "out", Stage::compile);
    const auto complaint = read_text_file(scratch->path() / "err", Stage::compile);
    if (!ending.empty() || !printed || printed->empty()) {
        return failed(fmt::format("{} {}: {}", program, ending.empty() ? "printed nothing" : ending,
                                  complaint ? *complaint : complaint.error().message));
    }
    return printed;
}

}  // namespace kiln::compile
