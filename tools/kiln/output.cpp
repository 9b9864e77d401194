#include "tools/kiln/output.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include <fmt/format.h>

#include "tools/kiln/interrupt.hpp"

namespace kiln::cli {
namespace {

// A cell that starts like a number is one.
bool is_number(std::string_view cell) {
    return !cell.empty() && (cell[0] == '-' || cell[0] == '.' || (cell[0] >= '0' && cell[0] <= '9'));
}

constexpr std::size_t kBarWidth = 30;

// Kept where it happens: a stream remembers that it failed, not why.
int g_output_error = 0;

void print_to_stderr(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace

void print_json(const Json& document) {
    let_output_arrive();
    // Text that is not UTF-8 (a path, say) must not lose the document.
    print("{}\n", document.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print_diagnostic(std::string_view message) {
    print_to_stderr(fmt::format("kiln: {}\n", message));
}

std::string cut_words(std::string_view message) {
    constexpr std::size_t kLongest = 4096;  // PATH_MAX
    constexpr std::size_t kKept = 64;
    std::string text;
    while (!message.empty()) {
        const auto word = message.substr(0, message.find(' '));
        const auto gap = message.substr(word.size(), 1);
        text += word.size() > kLongest ? fmt::format("{}... ({} bytes)", word.substr(0, kKept), word.size())
                                       : std::string(word);
        text += gap;
        message.remove_prefix(word.size() + gap.size());
    }
    return text;
}

void write_result(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() && g_output_error == 0) {
        g_output_error = errno;
    }
}

int flush_results() {
    if (std::fflush(stdout) != 0 && g_output_error == 0) {
        g_output_error = errno;
    }
    return g_output_error;
}

Json to_json(const Error& error) {
    return {{"code", static_cast<int>(error.code)},
            {"stage", static_cast<int>(error.stage)},
            {"message", error.message}};
}

Json to_json(const operators::Refusal& refusal) {
    return {{"reason", operators::decline_name(refusal.decline)},
            {"text", operators::decline_text(refusal.decline)},
            {"detail", refusal.error.message}};
}

Json to_json(const operators::Problem& problem) {
    Json object = Json::object();
    for (const auto& [name, value] : problem) {
        std::visit([&](const auto& v) { object[name] = v; }, value);
    }
    return object;
}

Json to_json(const device::ExecutionCounts& counts) {
    return {{"instructions", counts.instructions},
            {"valu", counts.valu},
            {"transcendental", counts.transcendental},
            {"mfma", counts.mfma},
            {"mfma_cycles", counts.mfma_cycles},
            {"salu", counts.salu},
            {"branches", counts.branches},
            {"waits", counts.waits},
            {"smem", counts.smem},
            {"vmem", counts.vmem},
            {"lds", counts.lds},
            {"global_bytes_read", counts.global_bytes_read},
            {"global_bytes_written", counts.global_bytes_written},
            {"global_line_requests", counts.global_line_requests},
            {"global_lines_read", counts.global_lines_read},
            {"global_lines_written", counts.global_lines_written},
            {"die_lines_read", counts.die_lines_read},
            {"scalar_bytes_read", counts.scalar_bytes_read},
            {"lds_bytes_read", counts.lds_bytes_read},
            {"lds_bytes_written", counts.lds_bytes_written},
            {"lds_accesses", counts.lds_accesses},
            {"lds_cycles", counts.lds_cycles},
            {"lds_conflict_cycles", counts.lds_conflict_cycles},
            {"work_groups", counts.work_groups},
            {"waves", counts.waves}};
}

std::string short_count(std::uint64_t count) {
    const auto value = static_cast<double>(count);
    if (count < 10'000) {
        return fmt::format("{}", count);
    }
    if (count < 10'000'000) {
        return fmt::format("{:.0f} k", value / 1e3);
    }
    return fmt::format("{:.1f} M", value / 1e6);
}

std::string short_bytes(std::uint64_t bytes) {
    const auto value = static_cast<double>(bytes);
    if (bytes < 10'000) {
        return fmt::format("{} B", bytes);
    }
    if (bytes < 1'000'000) {
        return fmt::format("{:.1f} kB", value / 1e3);
    }
    if (bytes < 1'000'000'000) {
        return fmt::format("{:.1f} MB", value / 1e6);
    }
    return fmt::format("{:.1f} GB", value / 1e9);
}

void TextTable::print() const {
    const std::size_t num_columns = rows_.front().size();
    std::vector<std::size_t> widths(num_columns, 0);
    std::vector<bool> numeric(num_columns, true);
    for (const auto& row : rows_) {
        for (std::size_t c = 0; c < num_columns; ++c) {
            widths[c] = std::max(widths[c], row[c].size());
            if (&row != &rows_.front() && !row[c].empty()) {
                numeric[c] = numeric[c] && is_number(row[c]);
            }
        }
    }
    for (const auto& row : rows_) {
        std::string line;
        for (std::size_t c = 0; c < num_columns; ++c) {
            line += c == 0 ? "" : "  ";
            line += numeric[c] ? fmt::format("{:>{}}", row[c], widths[c])
                               : fmt::format("{:<{}}", row[c], widths[c]);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        kiln::cli::print("{}\n", line);
    }
}

ProgressBar::ProgressBar(bool quiet) : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {}

void ProgressBar::step(std::size_t done, std::size_t total, std::string_view label) {
    if (quiet_) {
        return;
    }
    if (!terminal_) {
        print_to_stderr(fmt::format("[{}/{}] {}\n", done, total, label));
        return;
    }
    const std::size_t filled = total == 0 ? kBarWidth : kBarWidth * done / total;
    print_to_stderr(fmt::format("\r\x1b[K[{}{}] {}/{} {}", std::string(filled, '#'),
                                std::string(kBarWidth - filled, '.'), done, total, label));
    std::fflush(stderr);
    drawn_ = true;
}

ProgressBar::~ProgressBar() {
    if (drawn_) {
        print_to_stderr("\r\x1b[K");
    }
}

}  // namespace kiln::cli
