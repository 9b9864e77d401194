#include "tools/kiln/run_metrics.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fmt/format.h>

#include "base/file.hpp"
#include "base/prometheus.hpp"
#include "runtime/service/metrics.hpp"
#include "tools/kiln/new_file.hpp"

namespace kiln::cli {
namespace {

constexpr char kPageHead[] = "# HELP kiln_";

using prometheus::Page;
using prometheus::Type;

// Nothing but a page of ours is replaced: not a file of the user's, a device (/dev/stdout) or a link.
Result<void> check_replaceable(const std::string& file) {
    struct stat info {};
    if (::lstat(file.c_str(), &info) != 0) {
        return errno == ENOENT ? Result<void>()
                               : fail(ErrorCode::io, Stage::configure,
                                      fmt::format("--metrics-file: {}", system_message("stat", file, errno)));
    }
    const auto refuse = [&file](std::string_view found) -> Result<void> {
        return fail(
            ErrorCode::bad_input, Stage::configure,
            fmt::format("--metrics-file {}: expected a new file or a page of kiln's metrics, found {}", file,
                        found));
    };
    if (!S_ISREG(info.st_mode)) {
        return refuse(S_ISDIR(info.st_mode)   ? "a folder"
                      : S_ISLNK(info.st_mode) ? "a symbolic link"
                                              : "no regular file");
    }
    char head[sizeof(kPageHead) - 1] = {};
    std::ifstream(file, std::ios::binary).read(head, sizeof(head));
    const bool is_page = std::string_view(head, sizeof(head)) == kPageHead;
    return info.st_size == 0 || is_page ? Result<void>() : refuse("other contents");
}

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

void RunMetrics::count(const service::WarmSummary& summary) {
    count("compiled", summary.compiled);
    count("hits", summary.hits);
    count("failed", summary.failed);
    count("skipped", summary.skipped);
}

Result<void> RunMetrics::check() const {
    if (file.empty()) {
        return {};
    }
    if (auto replaceable = check_replaceable(file); !replaceable) {
        return replaceable;
    }
    return check_folder_of(file, "--metrics-file");
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
    // By now the command itself may have written under that name.
    if (auto replaceable = check_replaceable(file); !replaceable) {
        return replaceable;
    }
    return publish_file(file, as_bytes(page.text()), Stage::configure, Readers::everyone);
}

}  // namespace kiln::cli
