// Runs the real program and collects what it says.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace kiln::test {

struct Outcome {
    int exit_code = -1;  // 128 + N when signal N ended it
    std::string out;
    std::string err;

    // stdout as the one JSON document that it must be; a test fails here when it is anything else.
    [[nodiscard]] nlohmann::json json() const;
};

// Removed with the object.
class TemporaryFolder {
  public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

using Variables = std::map<std::string, std::string>;

struct RunOptions {
    const char* program = KILN_PROGRAM;
    const char* out = nullptr;  // written to this file instead of collected
    const char* err = nullptr;
    std::vector<std::string> unset = {};  // variables that the program does not get
    // In the child before the program: false ends it there with kNotStarted.
    std::function<bool()> before = {};
};
inline constexpr int kNotStarted = 126;

// One run of the program. Its environment is the test's own without any KILN_* but the prefixes of compilers
// and without tables of the machine's, then `environment`.
class Running {
  public:
    Running(const std::vector<std::string>& arguments, const Variables& environment,
            const RunOptions& options = {});
    ~Running();  // ended, if it still runs
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    [[nodiscard]] pid_t pid() const { return pid_; }
    void send(int signal) const;
    // What it wrote to stderr so far.
    [[nodiscard]] std::string err() const;
    // False when `text` did not appear on stderr before the program ended.
    [[nodiscard]] bool wait_for_err(const std::string& text);
    [[nodiscard]] bool ended();
    [[nodiscard]] Outcome wait();

  private:
    TemporaryFolder folder_;
    pid_t pid_ = -1;  // -1 once collected
    int status_ = 0;
};

[[nodiscard]] Outcome run_kiln(const std::vector<std::string>& arguments, const Variables& environment,
                               const RunOptions& options = {});

// The words of both.
[[nodiscard]] std::vector<std::string> with(std::vector<std::string> head,
                                            const std::vector<std::string>& tail);
[[nodiscard]] bool contains(const std::string& text, const std::string& part);
// All bytes of a file; empty where there is none.
[[nodiscard]] std::string contents(const std::filesystem::path& path);

}  // namespace kiln::test
