#include "tools/kiln/run_metrics.hpp"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "base/file.hpp"
#include "base/prometheus.hpp"
#include "runtime/service/metrics.hpp"

namespace kiln::cli {
namespace {

using prometheus::Page;
using prometheus::Type;

double seconds(std::chrono::system_clock::duration time) {
    return std::chrono::duration<double>(time).count();
}

}  // namespace

void RunMetrics::begin(std::string_view command, const std::vector<std::string_view>& results) {
    command_ = command;
    for (const auto& result : results) {
        results_.emplace(result, 0);
    }
}

void RunMetrics::count(std::string_view result, std::uint64_t number) {
    results_[std::string(result)] += number;
}

Result<void> RunMetrics::check() const {
    if (file.empty()) {
        return {};
    }
    std::error_code error;
    if (std::filesystem::is_directory(file, error)) {
        return fail(ErrorCode::bad_input, Stage::configure,
                    fmt::format("--metrics-file {}: expected a file, found a folder", file));
    }
    auto folder = std::filesystem::path(file).parent_path();
    folder = folder.empty() ? "." : folder;
    if (::access(folder.c_str(), W_OK | X_OK) != 0) {
        return fail(ErrorCode::io, Stage::configure,
                    fmt::format("--metrics-file: {}", system_message("write into", folder, errno)));
    }
    return {};
}

Result<void> RunMetrics::write(ExitCode code) const {
    if (file.empty()) {
        return {};
    }
    const auto now = std::chrono::system_clock::now();
    const std::vector<prometheus::Label> common = {{"command", command_}};
    Page page(common);
    page.family(Type::gauge, "kiln_run_exit_code", "How the last run ended: the exit code of the command.");
    page.sample(static_cast<std::uint64_t>(code));
    page.family(Type::gauge, "kiln_run_start_timestamp_seconds",
                "When the last run began, in seconds since 1970.");
    page.sample(seconds(started_.time_since_epoch()));
    page.family(Type::gauge, "kiln_run_duration_seconds", "How long the last run took.");
    page.sample(seconds(now - started_));
    page.family(Type::gauge, "kiln_run_results", "What the last run came to, by result.");
    for (const auto& [result, number] : results_) {
        page.sample(number, {{"result", result}});
    }
    if (service_ != nullptr) {
        service::add_metrics(*service_, page);
    }
    return publish_file(file, as_bytes(page.text()), Stage::configure, Readers::everyone);
}

}  // namespace kiln::cli
