#include "runtime/report/markdown.hpp"

#include <fmt/format.h>

#include "runtime/report/sheet.hpp"

namespace kiln::report {
namespace {

// Text inside a cell or a line, of which no character is markup.
std::string escaped(std::string_view text) {
    std::string made;
    for (const char character : text) {
        if (character == '\n' || character == '\r') {
            made += ' ';
            continue;
        }
        if (std::string_view("\\`*_{}[]<>#|&~!").find(character) != std::string_view::npos) {
            made += '\\';
        }
        made += character;
    }
    return made;
}

void write(const Sheet& sheet, std::string& text) {
    std::string rule;
    for (std::size_t i = 0; i < sheet.header.size(); ++i) {
        text += fmt::format("| {} ", escaped(sheet.header[i]));
        const bool is_number = !sheet.rows.empty() && sheet.rows.front()[i].number;
        rule += is_number ? "| ---: " : "| --- ";
    }
    text += fmt::format("|\n{}|\n", rule);
    for (const auto& row : sheet.rows) {
        for (const auto& cell : row) {
            const auto inside = escaped(cell.text);
            text += cell.winner && !inside.empty() ? fmt::format("| **{}** ", inside)
                                                   : fmt::format("| {} ", inside);
        }
        text += "|\n";
    }
    text += '\n';
}

void write(const Chart& chart, std::string& text) {
    text += fmt::format("### {}\n\n", escaped(title_of(chart)));
    if (!chart.winners.empty()) {
        const auto winners = winners_of(chart);
        text += fmt::format("{}:\n\n", escaped(winners.caption));
        write(winners, text);
    }
    for (const auto& line : crossovers_of(chart)) {
        text += fmt::format("Crossover: {}.\n\n", escaped(line));
    }
    if (const auto limits = limits_of(chart); !limits.empty()) {
        text += fmt::format("Limit: {}.\n\n", escaped(limits));
    }
    const auto candidates = candidates_of(chart);
    text += fmt::format("{}:\n\n", escaped(candidates.caption));
    write(candidates, text);
    const auto troubles = troubles_of(chart);
    for (const auto& line : troubles) {
        text += fmt::format("- {}\n", escaped(line));
    }
    text += troubles.empty() ? "" : "\n";
}

}  // namespace

std::string to_markdown(const Report& report) {
    auto text = fmt::format("# Candidates and times\n\n{}\n\n", escaped(kLegend));
    if (const auto untimed = untimed_of(report); !untimed.empty()) {
        text += fmt::format("{}\n\n", untimed);
    }
    for (const auto& problem : report.problems) {
        text += fmt::format("## {}\n\n", escaped(title_of(problem)));
        for (const auto& chart : problem.charts) {
            write(chart, text);
        }
    }
    text.pop_back();
    return text;
}

}  // namespace kiln::report
