// --metrics-file: what a run of a command came to, as a page for Prometheus' node exporter, whose textfile
// collector reads FOLDER/*.prom.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "runtime/service/service.hpp"

namespace kiln::cli {

enum class ExitCode : int;

// Of one run. Not thread safe.
class RunMetrics {
  public:
    // Empty: none is asked for.
    std::string file;

    // Of the command that runs: the words that its results go by, each at 0 until counted. Words of ours,
    // never of the caller's.
    void begin(std::string_view command, const std::vector<std::string_view>& results);
    // Whose numbers stand in the file too. It lives until the file is written.
    void follow(std::shared_ptr<const service::Service> service) { service_ = std::move(service); }
    void count(std::string_view result, std::uint64_t number);
    // "compiled", "hits", "failed" and "skipped" at once.
    void count(const service::WarmSummary& summary);

    // Before the command runs: whether the file's folder is there and takes files, so that no long run ends
    // without one; and whether what has that name is a page of an earlier run. ok where none is asked for.
    [[nodiscard]] Result<void> check() const;
    // After it, however it ended: a reader sees the old file or the whole new one.
    [[nodiscard]] Result<void> write(ExitCode code) const;

  private:
    std::string command_;
    std::map<std::string, std::uint64_t, std::less<>> results_;
    std::shared_ptr<const service::Service> service_;
    std::chrono::system_clock::time_point started_ = std::chrono::system_clock::now();
};

}  // namespace kiln::cli
