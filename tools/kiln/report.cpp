// kiln report: candidates and times as tables and plots.

#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.hpp"
#include "runtime/report/markdown.hpp"
#include "runtime/report/page.hpp"
#include "runtime/report/report.hpp"
#include "runtime/service/tables.hpp"
#include "tools/kiln/command.hpp"
#include "tools/kiln/new_file.hpp"
#include "tools/kiln/output.hpp"

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

struct ReportOptions {
    std::vector<std::string> files;
    std::string out;
    bool markdown = false, html = false;
};

// Both kinds of files begin with a brace: a record of candidates is whole in its line, a table is not.
bool is_candidates(std::string_view text) {
    const auto first = Json::parse(text.substr(0, text.find('\n')), nullptr, false);
    return first.is_object() && first.contains("record");
}

struct Figures {
    tune::Records records;
    tables::LoadedTable tables;
};

Result<void> add_file(const std::string& file, Figures& figures, service::Settings& settings) {
    std::error_code ignored;
    if (fs::is_directory(file, ignored)) {
        settings.table_places.push_back({tables::LayerKind::named, file});
        return {};
    }
    const auto text = read_text_file(file, Stage::configure);
    if (!text) {
        return tl::unexpected(text.error());
    }
    if (const auto start = text->find_first_not_of(" \t\r\n");
        start == std::string::npos || (*text)[start] != '{') {
        return fail(
            ErrorCode::bad_input, Stage::configure,
            fmt::format("{}: expected candidates of kiln tune, a JSON object in each line, or a shape table, "
                        "found neither (kiln import-csv makes a table of tuned configurations)",
                        file));
    }
    if (!is_candidates(*text)) {
        settings.table_places.push_back({tables::LayerKind::named, file});
        return {};
    }
    auto records = tune::parse_records(*text, file);
    if (!records) {
        return tl::unexpected(records.error());
    }
    std::ranges::move(records->candidates, std::back_inserter(figures.records.candidates));
    std::ranges::move(records->choices, std::back_inserter(figures.records.choices));
    return {};
}

Result<Figures> read_figures(const std::vector<std::string>& files, const CommonOptions& common) {
    auto settings = read_settings(common);
    if (!settings) {
        return fail(settings);
    }
    settings->table_places.clear();
    settings->shipped_tables = false;
    Figures figures;
    for (const auto& file : files) {
        if (const auto added = add_file(file, figures, *settings); !added) {
            return tl::unexpected(added.error());
        }
    }
    if (!settings->table_places.empty()) {
        auto loaded = service::load_tables(*settings);
        if (!loaded) {
            return fail(loaded);
        }
        if (!loaded->faults.empty()) {
            return tl::unexpected(tables::to_error(loaded->faults));
        }
        figures.tables = std::move(*loaded);
    }
    return figures;
}

Json describe_winner(const report::Chart& chart, const report::Winner& winner) {
    Json one = {{"m", winner.m}, {"candidate", winner.series}, {"us", winner.us}};
    one["runner_up"] =
        winner.runner_up ? Json{{"candidate", *winner.runner_up}, {"us", *winner.runner_up_us}} : Json();
    if (winner.limit) {
        Json parts = Json::object();
        for (const auto& [name, us] : winner.limit->parts) {
            parts[name] = us;
        }
        one["limit"] = {{"bound_by", std::move(parts)}, {"memory_us", winner.limit->memory_us}};
    } else {
        one["limit"] = nullptr;
    }
    one["template"] = chart.series[winner.series].template_id;
    one["why"] = winner.why;
    return one;
}

Json describe_chart(const report::Chart& chart) {
    Json candidates = Json::array();
    for (const auto& series : chart.series) {
        Json points = Json::array();
        for (const auto& point : series.points) {
            Json one = {
                {"m", point.m}, {"us", point.us ? Json(*point.us) : Json()}, {"status", point.status}};
            if (!point.message.empty()) {
                one["message"] = point.message;
            }
            one["present"] = point.present;
            points.push_back(std::move(one));
        }
        Json constants = Json::object();
        for (const auto& [name, value] : series.constants) {
            constants[name] = value;
        }
        Json one = {
            {"label", series.label}, {"template", series.template_id}, {"constants", std::move(constants)}};
        if (series.max_m) {
            one["max_m"] = *series.max_m;
        }
        one["points"] = std::move(points);
        candidates.push_back(std::move(one));
    }
    Json winners = Json::array();
    for (const auto& winner : chart.winners) {
        winners.push_back(describe_winner(chart, winner));
    }
    Json crossovers = Json::array();
    for (const auto& one : chart.crossovers) {
        crossovers.push_back(
            {{"from", one.before}, {"up_to_m", one.below}, {"to", one.after}, {"from_m", one.from}});
    }
    return {{"basis", report::name_of(chart.basis)},
            {"basis_text", report::title_of(chart.basis)},
            {"where", chart.where},
            {"candidates", std::move(candidates)},
            {"winners", std::move(winners)},
            {"crossovers", std::move(crossovers)}};
}

Json describe_report(const report::Report& made) {
    Json problems = Json::array();
    for (const auto& problem : made.problems) {
        Json charts = Json::array();
        for (const auto& chart : problem.charts) {
            charts.push_back(describe_chart(chart));
        }
        problems.push_back({{"operator", problem.operator_name},
                            {"problem", problem.problem},
                            {"device", problem.device},
                            {"charts", std::move(charts)}});
    }
    return {{"problems", std::move(problems)}, {"rows_without_a_time", made.num_untimed_rows}};
}

// Name in the folder, and text, of each form that is asked for.
std::vector<std::pair<std::string, std::string>> make_forms(const report::Report& made,
                                                            const ReportOptions& options) {
    const bool both = !options.markdown && !options.html;
    std::vector<std::pair<std::string, std::string>> forms;
    if (options.markdown || both) {
        forms.emplace_back("report.md", report::to_markdown(made));
    }
    if (options.html || (both && !options.out.empty())) {
        forms.emplace_back("report.html", report::to_page(made));
    }
    return forms;
}

// All or none where a file is in the way.
Result<std::vector<std::string>> write_forms(const report::Report& made, const ReportOptions& options) {
    std::vector<std::string> written;
    const auto forms = make_forms(made, options);
    for (const auto& [name, text] : forms) {
        written.push_back((fs::path(options.out) / name).string());
        std::error_code ignored;
        if (fs::exists(written.back(), ignored)) {
            return fail(ErrorCode::bad_input, Stage::configure,
                        fmt::format("--out {}: expected no {} in it, found one", options.out, name));
        }
    }
    for (std::size_t i = 0; i < forms.size(); ++i) {
        if (const auto done = write_new_file(written[i], forms[i].second); !done) {
            return tl::unexpected(done.error());
        }
    }
    return written;
}

ExitCode run_report(const ReportOptions& options, const CommonOptions& common) {
    if (options.out.empty() && options.markdown && options.html) {
        return report(Error{ErrorCode::bad_input, Stage::configure,
                            "--markdown --html: expected one of them, or --out FOLDER for both, found both"},
                      common);
    }
    const auto figures = read_figures(options.files, common);
    if (!figures) {
        return report(figures.error(), common);
    }
    const auto made = report::make_report(figures->records, figures->tables.table.rows());
    if (made.problems.empty()) {
        print_diagnostic(fmt::format("{}: no candidate, and no row that says a time; nothing was written",
                                     fmt::join(options.files, ", ")));
        if (common.json) {
            print_json(describe_report(made));
        }
        return ExitCode::check_failed;
    }
    std::vector<std::string> written;
    if (!options.out.empty()) {
        auto done = write_forms(made, options);
        if (!done) {
            return report(done.error(), common);
        }
        written = std::move(*done);
    }
    if (common.json) {
        auto document = describe_report(made);
        document["files"] = written;
        print_json(document);
    } else if (written.empty()) {
        print("{}", make_forms(made, options).front().second);
    } else {
        for (const auto& file : written) {
            print("{} written\n", file);
        }
    }
    return ExitCode::ok;
}

}  // namespace

void add_report(CLI::App& app, Invocation& invocation) {
    auto* command = app.add_subcommand("report", "candidates and times as tables and plots");
    auto options = std::make_shared<ReportOptions>();
    command
        ->add_option("file", options->files,
                     "what kiln tune --all-candidates wrote, tables, or folders of tables")
        ->required();
    command->add_option("-o,--out", options->out,
                        "a folder for report.md and report.html, neither of which may be there");
    command->add_flag("--markdown", options->markdown,
                      "Markdown alone; what standard output gets by default");
    command->add_flag("--html", options->html, "the page alone: one file that needs nothing beside itself");
    invocation.manuals.describe(
        *command,
        {.text = "For each problem the time of each candidate by M, the winner, where another "
                 "template takes over, and what bounds it. Measured times, a model's costs, "
                 "published times end to end and published sums of stages each stand in charts of "
                 "their own. Of a table those rows count whose provenance says times.",
         .examples = {{"kiln report results.jsonl -o results", "results/report.md and results/report.html"},
                      {"kiln report results.jsonl --markdown", "on standard output"}},
         .exits = {{0, "a report"},
                   {1, "nothing in the files says a time, and nothing is written"},
                   {2, "bad usage, a file that is malformed, or one of the name is there"},
                   {3, "the folder can not be written"},
                   {130, "interrupted"}}});
    command->callback([&invocation, options] {
        invocation.run = [&invocation, options] { return run_report(*options, invocation.common); };
    });
}

}  // namespace kiln::cli
