#include "tools/kiln/words.hpp"

#include <charconv>
#include <set>
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
        overrides.tables = words.tables;
    }
    return overrides;
}

Result<std::vector<service::WarmFilter>> make_filters(const Words& words, const std::string& target) {
    service::WarmFilter base;
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

std::string to_text(const std::vector<std::string>& words, const std::string& target) {
    return fmt::format("{}{}{}", words.empty() ? "all rows" : fmt::format("{}", fmt::join(words, " ")),
                       target.empty() ? "" : " for ", target);
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

Result<std::int64_t> parse_number(std::string_view option, std::string_view text, std::int64_t least) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < least) {
        return bad_words(
            fmt::format("{}: expected a whole number from {}, found \"{}\"", option, least, text));
    }
    return number;
}

Result<std::vector<std::int64_t>> parse_numbers(std::string_view option, std::string_view text,
                                                std::int64_t least) {
    std::set<std::int64_t> numbers;
    while (!text.empty()) {
        const auto comma = text.find(',');
        const auto number = parse_number(option, text.substr(0, comma), least);
        if (!number) {
            return tl::unexpected(number.error());
        }
        numbers.insert(*number);
        if (comma == text.size() - 1) {
            return bad_words(fmt::format("{}: expected a number after the last comma, found none", option));
        }
        text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    }
    return std::vector<std::int64_t>(numbers.begin(), numbers.end());
}

}  // namespace kiln::cli
