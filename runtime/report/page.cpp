#include "runtime/report/page.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/report/page_files.hpp"
#include "runtime/report/sheet.hpp"

namespace kiln::report {
namespace {

using Json = nlohmann::ordered_json;

// A longer table of candidates starts folded.
constexpr std::size_t kMostOpen = 16;

// Of the page itself: whatever is in it, nothing is fetched and nothing is sent.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'; form-action "
    "'none'";

std::string escaped(std::string_view text) {
    std::string made;
    for (const char character : text) {
        switch (character) {
            case '&':
                made += "&amp;";
                break;
            case '<':
                made += "&lt;";
                break;
            case '>':
                made += "&gt;";
                break;
            case '"':
                made += "&quot;";
                break;
            default:
                made += character;
        }
    }
    return made;
}

// Nothing in it ends a script or starts a comment.
std::string script_json(const Json& value) {
    std::string made;
    for (const char character : value.dump(-1, ' ', false, Json::error_handler_t::replace)) {
        if (character == '<') {
            made += "\\u003c";
        } else {
            made += character;
        }
    }
    return made;
}

void write(const Sheet& sheet, std::string& text) {
    text += fmt::format("<div class=\"scroll\" tabindex=\"0\"><table><caption>{}</caption>\n<thead><tr>",
                        escaped(sheet.caption));
    for (std::size_t i = 0; i < sheet.header.size(); ++i) {
        const bool is_number = !sheet.rows.empty() && sheet.rows.front()[i].number;
        text += fmt::format("<th scope=\"col\"{}>{}</th>", is_number ? " class=\"number\"" : "",
                            escaped(sheet.header[i]));
    }
    text += "</tr></thead>\n<tbody>\n";
    for (const auto& row : sheet.rows) {
        text += "<tr>";
        for (std::size_t i = 0; i < row.size(); ++i) {
            const auto classes =
                fmt::format("{}{}{}", row[i].number ? " number" : "", row[i].winner ? " winner" : "",
                            row[i].sentence ? " sentence" : "");
            text += fmt::format("<{}{}>{}</{}>", i == 0 ? "th scope=\"row\"" : "td",
                                classes.empty() ? "" : fmt::format(" class=\"{}\"", classes.substr(1)),
                                escaped(row[i].text), i == 0 ? "th" : "td");
        }
        text += "</tr>\n";
    }
    text += "</tbody></table></div>\n";
}

Json points_json(const Series& series) {
    Json points = Json::array();
    for (const auto& point : series.points) {
        if (point.us) {
            points.push_back({point.m, *point.us});
        }
    }
    return points;
}

// What the script draws: each candidate's points, the Ms where it wins, and the limit.
Json drawn(const Chart& chart) {
    std::map<std::size_t, Json> wins;
    Json limit = Json::array();
    for (const auto& winner : chart.winners) {
        wins[winner.series].push_back(winner.m);
        if (winner.limit) {
            limit.push_back({winner.m, winner.limit->memory_us});
        }
    }
    Json list = Json::array();
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
        if (auto points = points_json(chart.series[i]); !points.empty()) {
            const auto won = wins.find(i);
            list.push_back({{"label", chart.series[i].label},
                            {"wins", won == wins.end() ? Json::array() : won->second},
                            {"points", std::move(points)}});
        }
    }
    return {{"basis", title_of(chart.basis)},
            {"is_model", chart.basis == Basis::model},
            {"series", std::move(list)},
            {"limit", std::move(limit)}};
}

void write_plot(const Chart& chart, std::string& text) {
    const auto data = drawn(chart);
    if (data["series"].empty()) {
        return;
    }
    text += fmt::format(
        "<div class=\"plot\"><canvas role=\"img\" aria-label=\"Microseconds by M, {}. The tables below have "
        "the same "
        "figures.\"></canvas></div>\n<ul class=\"legend\"></ul>\n"
        "<script type=\"application/json\" class=\"data\">{}</script>\n",
        escaped(title_of(chart)), script_json(data));
}

void write_folded(std::string_view summary, bool is_open, const std::string& inside, std::string& text) {
    text += fmt::format("<details{}><summary>{}</summary>\n{}</details>\n", is_open ? " open" : "", summary,
                        inside);
}

void write(const Chart& chart, std::string& text) {
    text += fmt::format("<section class=\"chart\">\n<h3><span class=\"basis {}\">{}</span> {}</h3>\n",
                        name_of(chart.basis), escaped(title_of(chart.basis)), escaped(chart.where));
    write_plot(chart, text);
    if (!chart.winners.empty()) {
        write(winners_of(chart), text);
    }
    for (const auto& line : crossovers_of(chart)) {
        text += fmt::format("<p><b>Crossover:</b> {}.</p>\n", escaped(line));
    }
    if (const auto limits = limits_of(chart); !limits.empty()) {
        text += fmt::format("<p><b>Limit:</b> {}.</p>\n", escaped(limits));
    }
    std::string inside;
    write(candidates_of(chart), inside);
    write_folded(fmt::format("Candidates: {}", chart.series.size()), chart.series.size() <= kMostOpen, inside,
                 text);
    if (const auto troubles = troubles_of(chart); !troubles.empty()) {
        inside = "<ul>\n";
        for (const auto& line : troubles) {
            inside += fmt::format("<li>{}</li>\n", escaped(line));
        }
        inside += "</ul>\n";
        write_folded(fmt::format("Without a time: {}", troubles.size()), true, inside, text);
    }
    text += "</section>\n";
}

}  // namespace

std::string to_page(const Report& report) {
    std::string contents, body;
    for (std::size_t i = 0; i < report.problems.size(); ++i) {
        const auto title = escaped(title_of(report.problems[i]));
        contents += fmt::format("<li><a href=\"#problem-{}\">{}</a></li>\n", i, title);
        body += fmt::format("<section class=\"problem\" id=\"problem-{}\">\n<h2>{}</h2>\n", i, title);
        for (const auto& chart : report.problems[i].charts) {
            write(chart, body);
        }
        body += "</section>\n";
    }
    std::string head = fmt::format("<p>{}</p>\n", escaped(kLegend));
    if (const auto untimed = untimed_of(report); !untimed.empty()) {
        head += fmt::format("<p>{}</p>\n", untimed);
    }
    if (report.problems.size() > 1) {
        head += fmt::format("<nav aria-label=\"Problems\"><ul>\n{}</ul></nav>\n", contents);
    }
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<title>kiln: candidates and times</title>\n"
        "<style>\n{}</style>\n</head>\n<body>\n<main>\n<h1>Candidates and times</h1>\n{}{}</main>\n"
        "<footer><details><summary>Plots by Chart.js, under the MIT "
        "License</summary>\n<pre>{}</pre></details></footer>\n"
        "<script>\n{}</script>\n<script>\n{}</script>\n</body>\n</html>\n",
        kPolicy, page_file("page.css"), head, body, escaped(page_file("chart.js.license")),
        page_file("chart.js"), page_file("page.js"));
}

}  // namespace kiln::report
