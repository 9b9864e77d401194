#include "tests/lifetime/processes.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "tests/engine/engine.hpp"

namespace fs = std::filesystem;

namespace kiln::test {

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
                << R"(, "k": 128}, "target": ")" << engine::target()
                << R"(", "provenance": {"kind": "untuned"}, "buckets": [{"max_m": 16, "template": "linear/small_m",
                      "constants": )"
                << engine::constants(16, 1) << "}]}";
        }
        table << "]}";
    }
    ~Scratch() { fs::remove_all(folder_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    [[nodiscard]] const fs::path& folder() const { return folder_; }
    [[nodiscard]] std::string environment() const {
        return fmt::format(
            "TMPDIR='{0}/tmp' KILN_CACHE_DIR='{0}/cache' KILN_SHAPES_PATH='{0}/table.json' KILN_DEVICE={1} "
            "KILN_TARGET={2} "
            "KILN_LOG=error XDG_CONFIG_HOME=/nonexistent XDG_CONFIG_DIRS=/nonexistent",
            folder_.string(), engine::device(), engine::target());
    }

  private:
    fs::path folder_;
};

const Scratch& scratch() {
    static const Scratch instance;
    return instance;
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

}  // namespace

std::string engine_program(const std::string& name) {
    // Beside the test, in a build as in a stage.
    return fmt::format("'{}' {}",
                       (fs::read_symlink("/proc/self/exe").parent_path() / KILN_TEST_ENGINE).string(), name);
}

std::string tail_of(const std::string& text) {
    constexpr std::size_t kShown = 16384;
    return text.size() <= kShown ? text : "[...]" + text.substr(text.size() - kShown);
}

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

void check_no_worker_is_left() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (workers_run() && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    CHECK_FALSE(workers_run());
}

}  // namespace kiln::test
