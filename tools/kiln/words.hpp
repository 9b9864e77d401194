// The words that name what a command works on: tables, and problems as "OPERATOR key=value ...".
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

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

// What the service is opened with so that it reads the tables among the words.
[[nodiscard]] service::Overrides overrides_for(const Words& words);

// Filters that together select what the words name; one that selects everything where they name no problem. A
// malformed field is bad_input.
[[nodiscard]] Result<std::vector<service::WarmFilter>> make_filters(const Words& words,
                                                                    const std::string& target);

// Exactly one problem and no table; for commands that speak of one.
[[nodiscard]] Result<Words::ProblemWords> only_problem(const std::vector<std::string>& words);

// Checks an option that is a number of tokens to launch with.
[[nodiscard]] CLI::Validator launchable_m();

}  // namespace kiln::cli
