// The words that name what a command works on: tables, and problems as "OPERATOR key=value ...".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "runtime/operators/operator.hpp"
#include "runtime/service/service.hpp"

namespace kiln::cli {

// "a.json linear n=5120 k=4096 linear n=4608": tables come first; an operator's name starts the next problem.
struct Words {
    std::vector<std::string> tables;
    struct ProblemWords {
        const operators::Operator* op = nullptr;
        std::vector<std::string> fields;  // "n=5120"
    };
    std::vector<ProblemWords> problems;
};

// bad_input names a word that is neither, with the operators that there are.
[[nodiscard]] Result<Words> split_words(const std::vector<std::string>& words);

// What the service is opened with so that it reads the tables among the words, and no others.
[[nodiscard]] service::Overrides overrides_for(const Words& words);

// Filters that together select what the words name; one that selects everything where they name no problem. A
// malformed field is bad_input. Without a target they select rows of every target, with and without cu_num.
[[nodiscard]] Result<std::vector<service::WarmFilter>> make_filters(const Words& words,
                                                                    const std::string& target,
                                                                    std::optional<std::int64_t> cu_num = {});

// What was asked for, for a message that says it was not found.
[[nodiscard]] std::string to_text(const std::vector<std::string>& words, const std::string& target);

// not_found, for filters that select nothing: what was asked for and, where that is known, why a row that
// seems to fit does not serve it.
[[nodiscard]] Error nothing_selected(const service::Service& service,
                                     const std::vector<service::WarmFilter>& filters,
                                     const std::string& asked);

// Exactly one problem and no table; for commands that speak of one.
[[nodiscard]] Result<Words::ProblemWords> only_problem(const std::vector<std::string>& words);

// A whole number from `least`, written in digits; bad_input names the option. Stricter than what an option
// parser takes.
[[nodiscard]] Result<std::int64_t> parse_number(std::string_view option, std::string_view text,
                                                std::int64_t least);
// What --cu-num says: compute units of a device that is not there; nothing where the option was left out.
[[nodiscard]] Result<std::optional<std::int64_t>> parse_cu_num(const std::string& text);
inline constexpr const char* kCuNumHelp =
    "compute units of the device to choose for; rows with cu_num serve none when left out";
// "1,8,16-32": such numbers and ranges of them, ascending, each once. Empty text gives none; more than 4096
// in one range are bad_input.
[[nodiscard]] Result<std::vector<std::int64_t>> parse_numbers(std::string_view option, std::string_view text,
                                                              std::int64_t least);

}  // namespace kiln::cli
