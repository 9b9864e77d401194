// The real worker under hosts of every kind (host.cpp): whatever an engine did to its process, the same bytes
// come out, or an error says what is in the way.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/file.hpp"
#include "runtime/compile/toolchain.hpp"
#include "support.hpp"

namespace fs = std::filesystem;
using namespace kiln::compile;

namespace {

constexpr int kReport = 100;  // the descriptor that a host reports to

struct Outcome {
    int status = -1;
    std::string report;

    // The lines that start with `word` and a space.
    std::vector<std::string> lines(const std::string& word) const {
        std::vector<std::string> found;
        std::istringstream stream(report);
        for (std::string line; std::getline(stream, line);) {
            if (line.starts_with(word + " ")) {
                found.push_back(line.substr(word.size() + 1));
            }
        }
        return found;
    }
    long long note(const std::string& what) const {
        for (const auto& line : lines("note")) {
            if (line.starts_with(what + " ")) {
                return std::stoll(line.substr(what.size() + 1));
            }
        }
        return -1;
    }
    bool has(std::string_view part) const { return report.find(part) != std::string::npos; }
};

Outcome run(std::vector<std::string> command, const std::vector<std::string>& more_environment) {
    int channel[2];
    REQUIRE(::pipe2(channel, O_CLOEXEC) == 0);
    kiln::UniqueFd reader(channel[0]);
    kiln::UniqueFd writer(channel[1]);
    std::vector<std::string> environment = more_environment;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        environment.emplace_back(*entry);
    }
    const auto pointers = [](std::vector<std::string>& texts) {
        std::vector<char*> list;
        for (auto& text : texts) {
            list.push_back(text.data());
        }
        list.push_back(nullptr);
        return list;
    };
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, writer.get(), kReport);
    pid_t pid = -1;
    REQUIRE(::posix_spawn(&pid, command.front().c_str(), &actions, nullptr, pointers(command).data(),
                          pointers(environment).data()) == 0);
    ::posix_spawn_file_actions_destroy(&actions);
    writer.reset();
    Outcome outcome;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(reader.get(), buffer, sizeof buffer)) > 0;) {
        outcome.report.append(buffer, static_cast<std::size_t>(got));
    }
    REQUIRE(::waitpid(pid, &outcome.status, 0) == pid);
    return outcome;
}

Outcome run_host(const std::string& condition, const std::vector<std::string>& environment = {}) {
    return run({KILN_COMPILE_HOST, condition, std::to_string(kReport)}, environment);
}

// identity, code, listing: what every host must get alike.
std::string result_of(const Outcome& outcome) {
    std::string text;
    for (const char* word : {"identity", "code", "listing"}) {
        const auto lines = outcome.lines(word);
        text += std::string(word) + " " + (lines.empty() ? "missing" : lines.back()) + "\n";
    }
    return text;
}

const std::string& ordinary_result() {
    static const std::string result = [] {
        const Outcome outcome = run_host("ordinary");
        REQUIRE_MESSAGE(outcome.status == 0, outcome.report);
        REQUIRE_MESSAGE(result_of(outcome).find("missing") == std::string::npos, outcome.report);
        return result_of(outcome);
    }();
    return result;
}

Outcome check_served(const std::string& condition, const std::vector<std::string>& environment = {}) {
    CAPTURE(condition);
    const Outcome outcome = run_host(condition, environment);
    CHECK_MESSAGE(outcome.status == 0, outcome.report);
    CHECK_MESSAGE(outcome.lines("error").empty(), outcome.report);
    CHECK(result_of(outcome) == ordinary_result());
    for (const auto& line : outcome.lines("worker")) {
        CHECK_MESSAGE(std::stoi(line.substr(line.rfind(' ') + 1)) < 16, line);
    }
    return outcome;
}

void check_refused(const std::string& condition, const std::vector<std::string_view>& parts) {
    CAPTURE(condition);
    const Outcome outcome = run_host(condition);
    CHECK(outcome.status == 0);
    REQUIRE_MESSAGE(outcome.lines("error").size() == 1, outcome.report);
    for (const auto part : parts) {
        CHECK_MESSAGE(outcome.has(part), outcome.report);
    }
}

}  // namespace

TEST_CASE("HostThatCollectsChildrenInItsOwnWayGetsTheSameBytes") {
    check_served("sigchld ignored");
    check_served("no zombies");
    check_served("collects everything");
}

TEST_CASE("HostWithTenThousandDescriptorsStartsAWorkerWithThree") {
    const Outcome outcome = check_served("many descriptors");
    MESSAGE("held " << outcome.note("held") << " descriptors");
    CHECK(outcome.note("leaked") == 0);
}

TEST_CASE("HostUnderLowSoftLimitsGetsTheSameBytes") {
    check_served("low soft limits");
#ifndef KILN_SANITIZED  // a sanitizer reserves more than that
    check_served("low soft memory");
#endif
}

TEST_CASE("HostUnderHardLimitsIsToldWhichIsInTheWay") {
#ifndef KILN_SANITIZED  // a sanitizer looks at memory through a pipe
    check_refused("no descriptors left", {"error 4 ", "Too many open files"});
#endif
    check_refused("hard cpu limit", {"error 8 ", "RLIMIT_CPU of 1 seconds"});
    check_refused("hard file limit", {"RLIMIT_FSIZE of 0 KiB"});
#ifndef KILN_SANITIZED
    check_refused("hard memory limit", {"error 8 ", "ran out of its 384 MiB", "RLIMIT_AS of 384 MiB"});
#endif
    if (::geteuid() == 0) {
        MESSAGE("skipped: root is exempt from RLIMIT_NPROC");
    } else {
        check_refused("hard process limit", {"error 4 ", "RLIMIT_NPROC of 1 processes"});
    }
}

TEST_CASE("WorkerThatRunsOutOfItsMemoryIsNamedAndReplaced") {
    const Outcome outcome = run_host("memory limit");
    CHECK(outcome.status == 0);
    REQUIRE_MESSAGE(outcome.lines("error").size() == 1, outcome.report);
    const std::string error = outcome.lines("error").front();
    CHECK(error.starts_with("8 group/kernel.gfx950.hip: compile worker "));
    CHECK_MESSAGE(error.find("ran out of its 384 MiB and ") != std::string::npos, error);
    CHECK(result_of(outcome) == ordinary_result());  // the next request
}

TEST_CASE("HostThatWritesNumbersInItsOwnWayGetsTheSameBytes") {
    check_served("grouped digits");

    const test::TemporaryFolder folder;
    const std::string command = "localedef -i de_DE -f ISO-8859-1 '" +
                                (folder.path() / "de_DE.ISO-8859-1").string() + "' >'" +
                                (folder.path() / "log").string() + "' 2>&1";
    if (std::system(command.c_str()) != 0) {
        MESSAGE("skipped: this machine can not make the locale de_DE.ISO-8859-1 (localedef)");
        return;
    }
    const Outcome outcome = check_served("decimal comma", {"LOCPATH=" + folder.path().string()});
    CHECK_MESSAGE(outcome.has("note a half is 0,5"), outcome.report);
}

TEST_CASE("HostWithClosedStandardStreamsGetsTheSameBytes") {
    const Outcome outcome = check_served("closed standard streams");
    CHECK_MESSAGE(outcome.note("writable") == -1, outcome.report);
}

TEST_CASE("HostWithoutItsWorkingFolderGetsTheSameBytes") {
    check_served("no working folder");
}

TEST_CASE("HostThatBlocksEverySignalGetsTheSameBytes") {
    check_served("signals blocked");
}

TEST_CASE("HostWithManyThreadsGetsTheSameBytes") {
    const Outcome outcome = check_served("many threads");
    CHECK(outcome.note("workers") == 3);
}

TEST_CASE("HostWithAPreloadedMallocGetsTheSameBytes") {
#ifdef KILN_SANITIZED
    MESSAGE("skipped: a sanitizer brings an allocator of its own");
#else
    const Outcome outcome = check_served("other malloc", {"LD_PRELOAD=" KILN_PRELOADED_MALLOC});
    CHECK_MESSAGE(outcome.note("preloaded") == 1, outcome.report);
#endif
}

#ifndef KILN_SANITIZED  // a sanitizer's library does not run under a foreign loader
namespace {

struct Inside {
    Toolchain toolchain;

    Inside() {
        auto found = find_toolchain({}, Family::amdgpu);
        REQUIRE(found);
        toolchain = *std::move(found);
    }
    // Under the toolchain's own loader, where it has one.
    Outcome run_under_loader(const std::string& condition,
                             const std::vector<std::string>& environment = {}) const {
        std::vector<std::string> command{KILN_COMPILE_HOST, condition, std::to_string(kReport)};
        if (!toolchain.loader.empty()) {
            command.insert(command.begin(),
                           {toolchain.loader.string(), "--library-path", toolchain.folder.string()});
        }
        return run(command, environment);
    }
    void check_served_inside(const std::string& condition,
                             const std::vector<std::string>& environment = {}) const {
        CAPTURE(condition);
        const Outcome outcome = run_under_loader(condition, environment);
        CHECK(outcome.status == 0);
        CHECK_MESSAGE(outcome.lines("error").empty(), outcome.report);
        CHECK(outcome.lines("worker").empty());
        CHECK(result_of(outcome) == ordinary_result());
    }
};

}  // namespace

TEST_CASE_FIXTURE(Inside, "CompilingInsideTheProcessGivesTheBytesOfTheWorker") {
    // Engines say where their ROCm is; the compiler looks for nothing there.
    check_served_inside("in process", {"ROCM_PATH=/nonexistent", "HIP_PATH=/nonexistent"});
    check_served_inside("in process, many threads");
}

TEST_CASE_FIXTURE(Inside, "CompilingInsideTheProcessRefusesWhatAWorkerIsKeptFrom") {
    for (const char* variable : {"HIPRTC_COMPILE_OPTIONS_APPEND=-DA", "CPATH=/tmp", "AMD_COMGR_SAVE_TEMPS=1",
                                 "SOURCE_DATE_EPOCH=1"}) {
        const Outcome refused = run_under_loader("in process", {variable});
        const std::string name = std::string(variable).substr(0, std::string_view(variable).find('='));
        CHECK_MESSAGE(refused.has("error 4 compile inside this process: expected no variable that steers the "
                                  "compiler, found " +
                                  name),
                      refused.report);
    }
    const test::TemporaryFolder folder;
    const fs::path other = folder.path() / toolchain.companion.filename();
    fs::copy_file(KILN_PRELOADED_MALLOC, other);  // any library of that name
    const Outcome beside =
        run_under_loader("in process beside another", {"KILN_TEST_LIBRARY=" + other.string()});
    CHECK_MESSAGE(beside.has("error 4 compile inside this process: expected " + toolchain.companion.string() +
                             ", found " + other.string() + " loaded already"),
                  beside.report);

    const Outcome forked = run_under_loader("in process, then forked");
    CHECK_MESSAGE(forked.note("child") == 0, forked.report);
}

TEST_CASE_FIXTURE(Inside, "CompilingInsideTheProcessEndsWhenTheLibrariesAreReplaced") {
    // A prefix of links, whose hipRTC then becomes another build.
    const test::TemporaryFolder prefix;
    const fs::path libraries =
        toolchain.loader.empty() ? prefix.path() / "lib" : prefix.path() / "usr" / "lib" / "x86_64-linux-gnu";
    fs::create_directories(libraries);
    for (const auto& entry : fs::directory_iterator(toolchain.folder)) {
        fs::create_symlink(entry.path(), libraries / entry.path().filename());
    }
    const fs::path copy = prefix.path() / "copy";
    {
        std::ifstream from(toolchain.rtc, std::ios::binary);
        std::string bytes{std::istreambuf_iterator<char>(from), {}};
        const auto note = bytes.find(std::string("\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0", 16));
        REQUIRE(note != std::string::npos);
        bytes[note + 16] = static_cast<char>(bytes[note + 16] ^ 1);
        std::ofstream(copy, std::ios::binary) << bytes;
    }
    const Outcome outcome = run_under_loader(
        "in process, then replaced",
        {"KILN_ROCM_PREFIX=" + prefix.path().string(), "KILN_TEST_REPLACEMENT=" + copy.string(),
         "KILN_TEST_REPLACED=" + (libraries / toolchain.rtc.filename()).string()});
    CHECK(result_of(outcome) == ordinary_result());  // the first
    REQUIRE_MESSAGE(outcome.lines("error").size() == 1, outcome.report);
    CHECK_MESSAGE(outcome.has("no longer, the compiler that this process has loaded"), outcome.report);
}

// NVRTC is loaded natively, so the host runs under its own loader.
TEST_CASE("CompilingInsideTheProcessWithNvrtcGivesTheBytesOfTheWorker") {
    if (!test::has_cuda()) {
        return;
    }
    const Outcome ordinary = run_host("cuda");
    REQUIRE_MESSAGE(ordinary.lines("error").empty(), ordinary.report);
    CHECK(result_of(ordinary).find("missing") == std::string::npos);
    const Outcome inside = run_host("in process, cuda", {"CUDA_PATH=/nonexistent", "CUDA_HOME=/nonexistent"});
    CHECK_MESSAGE(inside.lines("error").empty(), inside.report);
    CHECK(inside.lines("worker").empty());
    CHECK(result_of(inside) == result_of(ordinary));

    // A driver that the loader would find stays out of it: cuInit is for the program to call, or never.
    const test::TemporaryFolder driver;
    fs::copy_file(KILN_PRELOADED_MALLOC, driver.path() / "libcuda.so.1");  // any library of that name
    const Outcome beside_driver = run_host("in process, cuda", {"LD_LIBRARY_PATH=" + driver.path().string()});
    CHECK_MESSAGE(beside_driver.note("driver") == 0, beside_driver.report);
    CHECK(result_of(beside_driver) == result_of(ordinary));

    const Outcome steered = run_host("in process, cuda", {"NVRTC_APPEND_FLAGS=-DA"});
    CHECK_MESSAGE(steered.has("error 4 compile inside this process: expected no variable that steers the "
                              "compiler, found NVRTC_APPEND_FLAGS"),
                  steered.report);
    const auto toolchain = find_toolchain({}, Family::cuda);
    REQUIRE(toolchain);
    const test::TemporaryFolder folder;
    const fs::path other = folder.path() / toolchain->companion.filename();
    fs::copy_file(KILN_PRELOADED_MALLOC, other);  // any library of that name
    const Outcome beside =
        run_host("in process, cuda beside another", {"KILN_TEST_LIBRARY=" + other.string()});
    CHECK_MESSAGE(beside.has("error 4 compile inside this process: expected " +
                             toolchain->companion.string() + ", found " + other.string() + " loaded already"),
                  beside.report);
}

TEST_CASE("CompilingInsideAProcessWhoseCLibraryIsTooOldIsRefusedByName") {
    const auto toolchain = find_toolchain({}, Family::amdgpu);
    REQUIRE(toolchain);
    if (toolchain->loader.empty()) {
        MESSAGE("skipped: the toolchain is this machine's own, and runs with its C library");
        return;
    }
    check_refused("in process",
                  {"error 4 compile inside this process: this process can not load the compiler",
                   toolchain->companion.string()});
}
#endif
