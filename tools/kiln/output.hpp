// What the commands print: JSON documents, aligned tables, a progress bar.
//
// Results go to stdout, everything else to stderr, so that a pipe gets results alone. A stderr that can not
// be written loses diagnostics and nothing else; whether stdout took everything is for the program's end to
// ask.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "runtime/device/device.hpp"
#include "runtime/operators/decline.hpp"
#include "runtime/operators/operator.hpp"

namespace kiln::cli {

using Json = nlohmann::ordered_json;

void print_json(const Json& document);
void print_diagnostic(std::string_view message);
// The message with words that are longer than any path cut to their beginning.
[[nodiscard]] std::string cut_words(std::string_view message);

void write_result(std::string_view text);
template <class... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
    write_result(fmt::format(format, std::forward<Args>(args)...));
}

// 0, or the errno of the first thing printed on stdout that did not arrive.
[[nodiscard]] int flush_results();

[[nodiscard]] Json to_json(const Error& error);
[[nodiscard]] Json to_json(const operators::Refusal& refusal);
[[nodiscard]] Json to_json(const operators::Problem& problem);
[[nodiscard]] Json to_json(const device::ExecutionCounts& counts);

// "1364" as "1.364 k", "1,364,000" as "1.36 M": a count that fits a column.
[[nodiscard]] std::string short_count(std::uint64_t count);
[[nodiscard]] std::string short_bytes(std::uint64_t bytes);

// Rows of text, printed with their columns aligned: words to the left, numbers to the right.
class TextTable {
  public:
    explicit TextTable(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
    void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
    void print() const;

  private:
    std::vector<std::vector<std::string>> rows_;  // equally long, the header first
};

// One line that is drawn again and again on a terminal, and a line for each step elsewhere. On stderr.
class ProgressBar {
  public:
    explicit ProgressBar(bool quiet);
    // `done` counts the one that the label names. Calls must not overlap.
    void step(std::size_t done, std::size_t total, std::string_view label);
    ~ProgressBar();
    ProgressBar(const ProgressBar&) = delete;
    ProgressBar& operator=(const ProgressBar&) = delete;

  private:
    const bool quiet_;
    const bool terminal_;
    bool drawn_ = false;
};

}  // namespace kiln::cli
