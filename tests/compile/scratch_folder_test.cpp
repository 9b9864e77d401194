// The folders of workers, and what becomes of those whose host was killed.

#include "runtime/compile/scratch_folder.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <optional>

#include "support.hpp"

namespace fs = std::filesystem;
using namespace kiln::compile;
using test::ScopedVariable;
using test::TemporaryFolder;

namespace {

// A folder for temporary files of the test's own.
struct Temporary {
    TemporaryFolder folder;
    ScopedVariable variable{"TMPDIR", folder.path().c_str()};

    fs::path make(const std::string& name) const {
        fs::create_directory(folder.path() / name);
        std::ofstream(folder.path() / name / "leftover") << "x";
        return folder.path() / name;
    }
};

ScratchFolder make_folder() {
    auto made = ScratchFolder::make();
    REQUIRE_MESSAGE(made, (made ? "" : made.error().message));
    return std::move(*made);
}

}  // namespace

TEST_CASE_FIXTURE(Temporary, "ScratchFolderIsPrivateAndGoesWithItsOwner") {
    fs::path path;
    {
        const ScratchFolder scratch = make_folder();
        path = scratch.path();
        CHECK(path.parent_path() == folder.path());
        CHECK((fs::status(path).permissions() & fs::perms::all) == fs::perms::owner_all);
        std::ofstream(path / "file") << "x";
    }
    CHECK(!fs::exists(path));
}

TEST_CASE_FIXTURE(Temporary, "FolderForTemporaryFilesThatCanNotBeUsedIsNamed") {
    for (const char* unusable : {"/nonexistent/temporary", "/proc/version"}) {
        const ScopedVariable other("TMPDIR", unusable);
        const auto made = ScratchFolder::make();
        REQUIRE(!made);
        CHECK(made.error().code == kiln::ErrorCode::environment);
        CHECK_MESSAGE(made.error().message.find(std::string(unusable) + " (TMPDIR)") != std::string::npos,
                      made.error().message);
        auto compiler = test::make_compiler();
        CHECK(compiler->compile(test::kernel_request()).error().code == kiln::ErrorCode::environment);
    }
}

TEST_CASE_FIXTURE(Temporary, "SweepTakesWhatADeadHostLeftAndNothingElse") {
    const ScratchFolder own = make_folder();
    std::ofstream(own.path() / "file") << "x";

    // Another host that lives, and one that was killed.
    int report[2];
    REQUIRE(::pipe2(report, O_CLOEXEC) == 0);
    const auto start_host = [&](std::string& path) {
        const pid_t host = ::fork();
        if (host == 0) {
            auto scratch = ScratchFolder::make();
            std::ofstream(scratch->path() / "file") << "x";
            const std::string text = scratch->path().string();
            [[maybe_unused]] const auto written = ::write(report[1], text.data(), text.size());
            while (true) {
                ::pause();
            }
        }
        char text[512] = {};
        REQUIRE(::read(report[0], text, sizeof text - 1) > 0);
        path = text;
        return host;
    };
    std::string living;
    std::string dead;
    const pid_t living_host = start_host(living);
    const pid_t dead_host = start_host(dead);
    ::kill(dead_host, SIGKILL);
    ::waitpid(dead_host, nullptr, 0);

    const fs::path orphan = make("kiln-worker-abc123");
    const fs::path other_name = make("kiln-worker-test-abc123");
    const fs::path short_name = make("kiln-worker-abc12");
    const fs::path target = make("target");
    fs::create_directory_symlink(target, folder.path() / "kiln-worker-link01");
    fs::create_directory_symlink(target, orphan / "inside");
    std::ofstream(folder.path() / "kiln-worker-file01") << "x";

    sweep_scratch_folders();
    CHECK(fs::exists(own.path() / "file"));
    CHECK(fs::exists(fs::path(living) / "file"));
    CHECK(!fs::exists(dead));
    CHECK(!fs::exists(orphan));
    CHECK(fs::exists(other_name / "leftover"));
    CHECK(fs::exists(short_name / "leftover"));
    CHECK(fs::exists(target / "leftover"));
    CHECK(fs::is_symlink(folder.path() / "kiln-worker-link01"));
    CHECK(fs::exists(folder.path() / "kiln-worker-file01"));

    ::kill(living_host, SIGKILL);
    ::waitpid(living_host, nullptr, 0);
    sweep_scratch_folders();
    CHECK(!fs::exists(living));
    ::close(report[0]);
    ::close(report[1]);
}

TEST_CASE_FIXTURE(Temporary, "SweepLeavesAnotherUsersFolderAlone") {
    if (::geteuid() != 0) {
        MESSAGE("skipped: only root can give a folder to another user");
        return;
    }
    constexpr uid_t kNobody = 65534;
    const fs::path theirs = make("kiln-worker-abc123");
    REQUIRE(::chown(theirs.c_str(), kNobody, kNobody) == 0);
    sweep_scratch_folders();
    CHECK(fs::exists(theirs / "leftover"));
    REQUIRE(::chown(theirs.c_str(), ::geteuid(), ::getegid()) == 0);
    sweep_scratch_folders();
    CHECK(!fs::exists(theirs));
}

TEST_CASE_FIXTURE(Temporary, "FolderThatCanNotBeLockedServesAllTheSame") {
    for (const std::uint32_t error : {ENOSYS, EINVAL, ENOLCK, EBADF}) {
        CAPTURE(error);
        const pid_t child = ::fork();
        if (child == 0) {
            sock_filter steps[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_flock, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            };
            const sock_fprog program{.len = std::size(steps), .filter = steps};
            if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
                ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
                ::_exit(2);
            }
            const auto made = ScratchFolder::make();
            sweep_scratch_folders();
            ::_exit(made && fs::exists(made->path()) ? 0 : 1);
        }
        int status = -1;
        REQUIRE(::waitpid(child, &status, 0) == child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 2) {
            MESSAGE("skipped: this process may set no seccomp filter, which stands for such a file system");
            return;
        }
        CHECK(status == 0);
    }
}

TEST_CASE_FIXTURE(Temporary, "FirstWorkerOfACompilerSweeps") {
    const fs::path orphan = make("kiln-worker-abc123");
    auto compiler = test::make_compiler();
    CHECK(fs::exists(orphan));
    REQUIRE(compiler->compile(test::kernel_request()));
    CHECK(!fs::exists(orphan));
}
