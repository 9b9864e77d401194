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

// The environment is the test's own without any KILN_* but KILN_ROCM_PREFIX, then `environment`. A process
// that is still running after `interrupt_after_ms` (where that is not 0) gets SIGINT.
[[nodiscard]] Outcome run_kiln(const std::vector<std::string>& arguments,
                               const std::map<std::string, std::string>& environment,
                               int interrupt_after_ms = 0);

}  // namespace kiln::test
