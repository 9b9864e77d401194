#include "runtime/report/sheet.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::report {
namespace {

std::vector<std::int64_t> all_m(const Chart& chart) {
    std::set<std::int64_t> values;
    for (const auto& series : chart.series) {
        for (const auto& point : series.points) {
            values.insert(point.m);
        }
    }
    return {values.begin(), values.end()};
}

// A compiler has more to say than a list has room for; all of it is in the file of candidates.
std::string shortened(const std::string& message) {
    constexpr std::size_t kMost = 400;
    if (message.size() <= kMost) {
        return message;
    }
    auto end = kMost;
    while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xC0) == 0x80) {
        --end;  // inside a character of several bytes
    }
    return fmt::format("{} ...", message.substr(0, end));
}

Cell cell_of(const Chart& chart, std::size_t index, std::int64_t m) {
    const auto& points = chart.series[index].points;
    const auto point = std::ranges::find(points, m, &Point::m);
    if (point == points.end()) {
        return {{}, false, true};
    }
    const auto winner = std::ranges::find(chart.winners, m, &Winner::m);
    return {
        fmt::format("{}{}", point->us ? time_text(*point->us) : point->status, point->present ? " *" : ""),
        winner != chart.winners.end() && winner->series == index, true};
}

}  // namespace

std::string title_of(const ProblemReport& problem) {
    return fmt::format("{} {} on {}", problem.operator_name, problem.problem, problem.device);
}

std::string title_of(const Chart& chart) {
    return fmt::format("{}: {}", title_of(chart.basis), chart.where);
}

Sheet candidates_of(const Chart& chart) {
    Sheet sheet{fmt::format("Every candidate by M, {}", title_of(chart.basis)), {"candidate"}, {}};
    const auto values = all_m(chart);
    for (const auto m : values) {
        sheet.header.push_back(fmt::format("M = {}", m));
    }
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
        std::vector<Cell> row = {{chart.series[i].label}};
        for (const auto m : values) {
            row.push_back(cell_of(chart, i, m));
        }
        sheet.rows.push_back(std::move(row));
    }
    return sheet;
}

Sheet winners_of(const Chart& chart) {
    const bool has_limit =
        std::ranges::any_of(chart.winners, [](const auto& one) { return one.limit.has_value(); });
    const bool has_why = std::ranges::any_of(chart.winners, [](const auto& one) { return !one.why.empty(); });
    const bool has_next =
        std::ranges::any_of(chart.winners, [](const auto& one) { return one.runner_up.has_value(); });
    Sheet sheet{fmt::format("The winner at each M, {}", title_of(chart.basis)), {"M", "winner", "us"}, {}};
    if (has_next) {
        sheet.header.insert(sheet.header.end(), {"runner-up", "us", "behind by"});
    }
    if (has_limit) {
        sheet.header.insert(sheet.header.end(), {"bound by", "memory alone, us"});
    }
    if (has_why) {
        sheet.header.emplace_back("choice");
    }
    for (const auto& winner : chart.winners) {
        std::vector<Cell> row = {{fmt::format("{}", winner.m), false, true},
                                 {chart.series[winner.series].label, true},
                                 {time_text(winner.us), true, true}};
        if (winner.runner_up) {
            row.push_back({chart.series[*winner.runner_up].label});
            row.push_back({time_text(*winner.runner_up_us), false, true});
            row.push_back(
                {fmt::format("{:+.1f}%", 100 * (*winner.runner_up_us / winner.us - 1)), false, true});
        } else if (has_next) {
            row.insert(row.end(), {{}, {{}, false, true}, {{}, false, true}});
        }
        if (has_limit) {
            row.push_back({winner.limit ? to_text(*winner.limit) : std::string()});
            row.push_back({winner.limit ? time_text(winner.limit->memory_us) : std::string(), false, true});
        }
        if (has_why) {
            row.push_back({winner.why, false, false, true});
        }
        sheet.rows.push_back(std::move(row));
    }
    return sheet;
}

std::vector<std::string> crossovers_of(const Chart& chart) {
    std::vector<std::string> lines;
    for (const auto& one : chart.crossovers) {
        lines.push_back(fmt::format("from {} (up to M = {}) to {} (from M = {})", one.before, one.below,
                                    one.after, one.from));
    }
    if (lines.empty() && !chart.winners.empty()) {
        lines.push_back(fmt::format("none: {} wins at every M that was looked at",
                                    chart.series[chart.winners.front().series].template_id));
    }
    return lines;
}

std::string limits_of(const Chart& chart) {
    if (chart.winners.empty()) {
        return {};
    }
    return std::ranges::any_of(chart.winners, [](const auto& one) { return one.limit.has_value(); })
               ? "what the winner's model cost is made of, and what its memory traffic alone would take: "
                 "model, not "
                 "measured"
               : "not known: times alone do not say what bounds them";
}

std::vector<std::string> troubles_of(const Chart& chart) {
    std::vector<std::string> lines;
    for (const auto& series : chart.series) {
        std::map<std::pair<std::string, std::string>, std::vector<std::int64_t>> said;  // where by what
        for (const auto& point : series.points) {
            if (!point.us) {
                said[{point.status, point.message}].push_back(point.m);
            }
        }
        for (const auto& [what, where] : said) {
            const auto& [status, message] = what;
            lines.push_back(fmt::format("{} at M = {}: {}{}{}", series.label, fmt::join(where, ", "), status,
                                        message.empty() ? "" : ": ", shortened(message)));
        }
    }
    return lines;
}

std::string untimed_of(const Report& report) {
    switch (report.num_untimed_rows) {
        case 0:
            return {};
        case 1:
            return "One row of the tables says no time.";
        default:
            return fmt::format("{} rows of the tables say no time.", report.num_untimed_rows);
    }
}

}  // namespace kiln::report
