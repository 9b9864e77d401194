#include "tools/kiln/words.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/tables/known_target.hpp"

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

// Why nothing serves the problem of a filter that leaves no field open; empty where there is no such problem
// or no row for it.
std::string why_not_served(const tables::Table& table, const service::WarmFilter& filter) {
    const auto whole = filter.op != nullptr ? operators::complete(*filter.op, filter.problem)
                                            : bad_words("expected an operator, found none");
    if (!whole) {
        return {};
    }
    if (const auto judged = filter.op->judge(*whole); !judged) {
        return judged.error().error.message;
    }
    for (const auto* row : table.rows_in_force(filter.op->name(), *whole)) {
        if (const auto exact = operators::row_at(*row, *whole); !exact) {
            return exact.error().message;
        }
    }
    return {};
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

// What a table and the public form hold in that place.
constexpr std::int64_t kMostComputeUnits = std::numeric_limits<std::int32_t>::max();

Result<std::optional<std::int64_t>> parse_cu_num(const std::string& text) {
    if (text.empty()) {
        return std::optional<std::int64_t>();
    }
    auto number = parse_number("--cu-num", text, 1);
    if (!number) {
        return fail(number);
    }
    if (*number > kMostComputeUnits) {
        return bad_words(fmt::format("--cu-num: expected at most {}, found {}", kMostComputeUnits, *number));
    }
    return std::optional(*number);
}

Result<std::vector<service::WarmFilter>> make_filters(const Words& words, const std::string& target,
                                                      std::optional<std::int64_t> cu_num) {
    service::WarmFilter base;
    if (!target.empty()) {
        auto parsed = tables::parse_asked_target(target);
        if (!parsed) {
            return bad_words(fmt::format("--target: {}", parsed.error().message));
        }
        base.target = tables::DeviceTraits(std::move(*parsed), cu_num);
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
    std::vector<std::string> parts = words;
    if (!target.empty()) {
        parts.push_back(fmt::format("for {}", target));
    }
    return parts.empty() ? "there" : fmt::format("{}", fmt::join(parts, " "));
}

Error nothing_selected(const service::Service& service, const std::vector<service::WarmFilter>& filters,
                       const std::string& asked) {
    const auto snapshot = service.snapshot();
    std::string why;
    for (const auto& filter : filters) {
        if (why = why_not_served(*snapshot->table, filter); !why.empty()) {
            break;
        }
    }
    for (const auto* row : snapshot->table->rows()) {
        const bool asked_for = std::ranges::any_of(filters, [&](const auto& filter) {
            return filter.op == nullptr || filter.op->name() == row->operator_name;
        });
        if (why.empty() && asked_for && row->is_general() && row->problems.empty()) {
            why = fmt::format(
                "the general row {} lists no problems, so it serves those alone that are spelled out whole "
                "(OPERATOR key=value...)",
                row->origin.text());
        }
    }
    return {ErrorCode::not_found, Stage::table,
            fmt::format("no row of the shape tables is {}{}{}", asked, why.empty() ? "" : ": ", why)};
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

namespace {

struct Range {
    std::int64_t first = 0, last = 0;
};

// "8" or "8-16". What is more than a list is meant to hold is refused before it is made.
Result<Range> parse_range(std::string_view option, std::string_view text, std::int64_t least) {
    constexpr std::int64_t kMost = 4096;
    const auto dash = text.find('-');
    if (dash == std::string_view::npos || dash == 0) {
        return parse_number(option, text, least).map([](std::int64_t number) {
            return Range{number, number};
        });
    }
    const auto first = parse_number(option, text.substr(0, dash), least);
    if (!first) {
        return tl::unexpected(first.error());
    }
    const auto last = parse_number(option, text.substr(dash + 1), *first);
    if (!last) {
        return tl::unexpected(last.error());
    }
    if (*last - *first >= kMost) {
        return bad_words(
            fmt::format("{}: expected at most {} numbers in a range, found \"{}\"", option, kMost, text));
    }
    return Range{*first, *last};
}

}  // namespace

Result<std::vector<std::int64_t>> parse_numbers(std::string_view option, std::string_view text,
                                                std::int64_t least) {
    std::set<std::int64_t> numbers;
    while (!text.empty()) {
        const auto comma = text.find(',');
        const auto range = parse_range(option, text.substr(0, comma), least);
        if (!range) {
            return tl::unexpected(range.error());
        }
        for (std::int64_t number = range->first; number <= range->last; ++number) {
            numbers.insert(number);
        }
        if (comma == text.size() - 1) {
            return bad_words(fmt::format("{}: expected a number after the last comma, found none", option));
        }
        text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    }
    return std::vector<std::int64_t>(numbers.begin(), numbers.end());
}

}  // namespace kiln::cli
