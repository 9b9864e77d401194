// How processes that use kiln begin, fork and end. Each case is a process of its own, with the simulator, and
// a cache that is filled once.
#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace fs = std::filesystem;

namespace {

// A folder with a table of one small problem, and many that nobody has compiled yet.
class Scratch {
  public:
    Scratch() {
        std::string name = (fs::temp_directory_path() / "kiln-lifetime-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        folder_ = name;
        fs::create_directory(folder_ / "tmp");
        std::ofstream table(folder_ / "table.json");
        table << R"({"schema": 1, "rows": [)";
        for (int n = 16; n <= 1024; n += 16) {
            table
                << (n == 16 ? "" : ", ") << R"({"operator": "linear", "problem": {"n": )" << n
                << R"(, "k": 128}, "target": "gfx950", "provenance": {"kind": "untuned"}, "buckets": [{"max_m": 16,
                      "template": "linear/small_m",
                      "constants": {"tiles_n": 1, "waves": 1, "lane_rows": 16, "blocks_ahead": 1}}]})";
        }
        table << "]}";
    }
    ~Scratch() { fs::remove_all(folder_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    [[nodiscard]] const fs::path& folder() const { return folder_; }
    [[nodiscard]] std::string environment() const {
        return fmt::format(
            "TMPDIR='{0}/tmp' KILN_CACHE_DIR='{0}/cache' KILN_SHAPES_PATH='{0}/table.json' KILN_DEVICE=sim "
            "KILN_LOG=error XDG_CONFIG_HOME=/nonexistent XDG_CONFIG_DIRS=/nonexistent",
            folder_.string());
    }

  private:
    fs::path folder_;
};

const Scratch& scratch() {
    static const Scratch instance;
    return instance;
}

// For a process that ends with handles that it lost on purpose.
constexpr const char* kLeaks = "ASAN_OPTIONS=detect_leaks=0";

// The end of a text, where a process says why it ended.
std::string tail_of(const std::string& text) {
    constexpr std::size_t kShown = 16384;
    return text.size() <= kShown ? text : "[...]" + text.substr(text.size() - kShown);
}

// What the process wrote. It must end by itself, with 0: `timeout` answers 124 for one that hangs, and the
// programs say where.
std::string run(const std::string& command) {
    FILE* const pipe =
        popen(fmt::format("{} timeout -k 10 300 {} 2>&1", scratch().environment(), command).c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::string output;
    char buffer[4096];
    for (std::size_t count = 0; (count = fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
        output.append(buffer, count);
    }
    const int status = pclose(pipe);
    CAPTURE(command);
    CAPTURE(tail_of(output));
    CHECK(WIFEXITED(status));
    CHECK_MESSAGE(WEXITSTATUS(status) == 0, (WEXITSTATUS(status) == 124 ? "it hung: ended after 300 s" : ""));
    return output;
}

// Whether any process was started for this test's scratch folder: workers name theirs.
bool workers_run() {
    for (const auto& process : fs::directory_iterator("/proc")) {
        std::ifstream file(process.path() / "cmdline");
        std::string words{std::istreambuf_iterator<char>(file), {}};
        if (words.find("kiln-compile") != std::string::npos &&
            words.find(scratch().folder().string()) != std::string::npos) {
            return true;
        }
    }
    return false;
}

void check_no_worker_is_left() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (workers_run() && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    CHECK_FALSE(workers_run());
}

std::string end_by(const std::string& how) {
    return run(fmt::format("{} {}", KILN_TEST_ENDS, how));
}

}  // namespace

TEST_CASE("APlanInAStaticObjectIsReleasedAfterMain") {
    CHECK(end_by("static") == "end\n");
    check_no_worker_is_left();
}

TEST_CASE("AStaticDestructorMayUseKilnAndEveryCallComesBack") {
    CHECK(end_by("static-use") == "end\nused\n");
}

TEST_CASE("ExitWithLivePlansAndWorkThatNobodyWaitsFor") {
    CHECK(end_by("exit-live") == "end\n");
}

TEST_CASE("QuickExitWithLivePlans") {
    CHECK(end_by("quick-exit") == "end\n");
}

TEST_CASE("ExitWhileThreadsLaunchPrepareAndCompile") {
    for (const char* how : {"busy", "busy-thread", "busy-_exit"}) {
        CHECK(end_by(how) == "end\n");
        check_no_worker_is_left();
    }
}

TEST_CASE("AChildOfAForkIsToldAndEndsAndItsParentGoesOn") {
    for (const char* how : {"exit", "_exit", "before"}) {
        const auto said = run(fmt::format("env KILN_LOG=info {} {} {}", kLeaks, KILN_TEST_FORKS, how));
        CHECK_MESSAGE(said.find("not so") == std::string::npos, tail_of(said));
    }
    check_no_worker_is_left();
}

TEST_CASE("ALibraryThatIsClosedStaysUsableAndOpensAgain") {
    for (const auto& [held, environment] : {std::pair{"released", ""}, std::pair{"live", kLeaks}}) {
        CHECK(run(fmt::format("env {} {} {} {} {}", environment, KILN_TEST_OPENED, KILN_TEST_LIBKILN,
                              KILN_TEST_LOOKALIKE, held)) == "end\n");
    }
}

TEST_CASE("AHundredServicesLeaveNothingBehind") {
    CHECK(run(KILN_TEST_MANY) == "end\n");
}

TEST_CASE("ThreadsShareAServiceAndItsPlans") {
    CHECK(run(fmt::format("{} {}", KILN_TEST_THREADS, KILN_TEST_ROUNDS)) == "end\n");
}
