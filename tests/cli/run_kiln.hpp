// Runs the real program and collects what it says.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace kiln::test {

struct Outcome {
    int exit_code = -1;
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

struct RunOptions {
    int interrupt_after_ms = 0;  // SIGINT then, if it still runs; 0: never
    const char* out = nullptr;   // written to this file instead of collected
    const char* err = nullptr;
};

// The environment is the test's own without any KILN_* but KILN_ROCM_PREFIX, then `environment`.
[[nodiscard]] Outcome run_kiln(const std::vector<std::string>& arguments,
                               const std::map<std::string, std::string>& environment,
                               const RunOptions& options = {});

}  // namespace kiln::test
