#include "tools/kiln/words.hpp"

#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::cli {
namespace {

std::vector<std::string_view> operator_names() {
    std::vector<std::string_view> names;
    for (const auto* op : operators::all_operators()) {
        names.push_back(op->name());
    }
    return names;
}

bool looks_like_table(const std::string& word) {
    return word.ends_with(".json") || word.find('/') != std::string::npos;
}

auto bad_words(std::string message) {
    return fail(ErrorCode::bad_input, Stage::configure, std::move(message));
}

}  // namespace

Result<Words> split_words(const std::vector<std::string>& words) {
    Words split;
    for (const auto& word : words) {
        if (const auto* op = operators::find_operator(word)) {
            split.problems.push_back({op, {}});
        } else if (word.find('=') != std::string::npos && !split.problems.empty()) {
            split.problems.back().fields.push_back(word);
        } else if (split.problems.empty() && looks_like_table(word)) {
            split.tables.push_back(word);
        } else {
            return bad_words(
                fmt::format("\"{}\": expected {}an operator ({}){}", word,
                            split.problems.empty() ? "a table (a path or NAME.json) or " : "key=value or ",
                            fmt::join(operator_names(), ", "),
                            word.find('=') != std::string::npos ? " before key=value" : ""));
        }
    }
    return split;
}

service::Overrides overrides_for(const Words& words) {
    service::Overrides overrides;
    if (!words.tables.empty()) {
        overrides.shapes_path = fmt::format("{}", fmt::join(words.tables, ":"));
    }
    return overrides;
}

Result<std::vector<service::WarmFilter>> make_filters(const Words& words, const std::string& target) {
    service::WarmFilter base;
    base.sources = words.tables;
    if (!target.empty()) {
        auto parsed = tables::parse_target(target);
        if (!parsed) {
            return bad_words(fmt::format("--target {}", parsed.error().message));
        }
        base.target = std::move(*parsed);
    }
    if (words.problems.empty()) {
        return std::vector{base};
    }
    std::vector<service::WarmFilter> filters;
    for (const auto& problem : words.problems) {
        auto fields = operators::parse_filter(*problem.op, problem.fields);
        if (!fields) {
            return fail(fields);
        }
        auto filter = base;
        filter.op = problem.op;
        filter.problem = std::move(*fields);
        filters.push_back(std::move(filter));
    }
    return filters;
}

Result<Words::ProblemWords> only_problem(const std::vector<std::string>& words) {
    auto split = split_words(words);
    if (!split) {
        return fail(split);
    }
    if (!split->tables.empty() || split->problems.size() != 1) {
        return bad_words(
            fmt::format("expected one problem, OPERATOR key=value..., found \"{}\"", fmt::join(words, " ")));
    }
    return std::move(split->problems.front());
}

CLI::Validator launchable_m() {
    return {[](std::string& word) {
                std::int64_t m = 0;
                const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), m);
                const bool well = error == std::errc() && end == word.data() + word.size() && m >= 1;
                return well ? std::string() : fmt::format("expected a whole number from 1, found {}", word);
            },
            "M"};
}

}  // namespace kiln::cli
