// kiln import-csv: a shape table from a file of tuned configurations in the public form.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.hpp"
#include "runtime/operators/demands.hpp"
#include "runtime/operators/operator.hpp"
#include "runtime/tables/writer.hpp"
#include "runtime/tuned_config/import.hpp"
#include "tools/kiln/command.hpp"
#include "tools/kiln/new_file.hpp"
#include "tools/kiln/output.hpp"

namespace kiln::cli {
namespace {

using tuned_config::Import;

struct ImportOptions {
    std::string file;
    std::string out;
    bool fill = false;
};

Result<Import> read_tuned_file(const std::string& file) {
    auto text = read_text_file(file, Stage::table);
    if (!text) {
        return fail(text);
    }
    if (text->size() > tables::Loader::kMaxBytes) {
        return fail(ErrorCode::bad_input, Stage::table,
                    fmt::format("{}: expected at most {} bytes, found {}", file, tables::Loader::kMaxBytes,
                                text->size()));
    }
    auto made = tuned_config::import_csv(file, *text, operators::check_row);
    if (!made.form.faults.empty()) {
        return tl::unexpected(tables::to_error(made.form.faults));
    }
    return made;
}

// The gaps of each row from the row that the tables have for it now.
Result<void> fill_from_tables(Import& made, const CommonOptions& common) {
    const auto opened = open_service(common);
    if (!opened) {
        return tl::unexpected(opened.error());
    }
    const auto snapshot = (*opened)->snapshot();
    std::vector<tuned_config::Gap> left;
    for (std::size_t i = 0; i < made.rows.size(); ++i) {
        auto& row = made.rows[i];
        std::vector<tuned_config::Gap> gaps;
        std::ranges::copy_if(made.gaps, std::back_inserter(gaps),
                             [i](const auto& gap) { return gap.row == i; });
        const auto* op = operators::find_operator(row.operator_name);
        const auto problem = operators::complete(*op, row.problem);
        const auto found = problem
                               ? snapshot->table->find(row.operator_name, *problem, {row.target, row.cu_num})
                               : tables::Lookup();
        const auto present =
            found.row != nullptr
                ? operators::row_at(*found.row, *problem)
                : Result<tables::Row>(fail(ErrorCode::not_found, Stage::table, found.detail));
        if (present) {
            auto demanding = *problem;
            demanding.insert_or_assign(std::string(operators::kDeterministic), std::int64_t{1});
            gaps = tuned_config::fill_gaps(row, std::move(gaps), *present, [&](const tables::Bucket& bucket) {
                return !operators::why_passed_over(*op, demanding, row.target, bucket);
            });
        }
        std::ranges::move(gaps, std::back_inserter(left));
    }
    made.gaps = std::move(left);
    return {};
}

std::string gap_text(const Import& made, const tuned_config::Gap& gap) {
    const auto& row = made.rows[gap.row];
    return fmt::format("{}: no row for M from {} to {}; what serves {} serves there",
                       tables::to_text(row.problem), gap.from, gap.to, row.bucket_for(gap.to)->max_m);
}

void say_findings(const std::string& file, const Import& made) {
    for (const auto& one : made.leftovers) {
        print_diagnostic(fmt::format("{}:{}: no counterpart: {}: {}", file, one.line, one.what, one.reason));
    }
    for (const auto& gap : made.gaps) {
        print_diagnostic(gap_text(made, gap));
    }
    if (!made.form.missing.empty()) {
        print_diagnostic(
            fmt::format("{}: columns that are not there: {}", file, fmt::join(made.form.missing, ", ")));
    }
    if (!made.form.unknown.empty()) {
        print_diagnostic(fmt::format("{}: columns that are kept and mean nothing here: {}", file,
                                     fmt::join(made.form.unknown, ", ")));
    }
}

Json describe_import(const std::string& text, const Import& made) {
    Json leftovers = Json::array();
    for (const auto& one : made.leftovers) {
        leftovers.push_back({{"line", one.line}, {"what", one.what}, {"reason", one.reason}});
    }
    Json gaps = Json::array();
    for (const auto& gap : made.gaps) {
        gaps.push_back(
            {{"problem", to_json(made.rows[gap.row].problem)}, {"from", gap.from}, {"to", gap.to}});
    }
    Json timings = Json::object();
    for (const auto& [timing, count] : made.timings) {
        timings[std::string(tuned_config::to_text(timing))] = count;
    }
    return {{"imported", made.num_imported},
            {"without_counterpart", std::move(leftovers)},
            {"gaps", std::move(gaps)},
            {"missing_columns", made.form.missing},
            {"unknown_columns", made.form.unknown},
            {"timings", std::move(timings)},
            {"table", text.empty() ? Json() : Json::parse(text)}};
}

ExitCode import_csv(const ImportOptions& options, const CommonOptions& common) {
    auto made = read_tuned_file(options.file);
    if (!made) {
        return report(made.error(), common);
    }
    if (options.fill) {
        if (const auto filled = fill_from_tables(*made, common); !filled) {
            return report(filled.error(), common);
        }
    }
    const auto text = made->rows.empty() ? std::string() : tables::to_table_text(made->rows);
    const bool writes = !options.out.empty() && !text.empty();
    if (writes) {
        if (const auto written = write_new_file(options.out, text); !written) {
            return report(written.error(), common);
        }
    }
    say_findings(options.file, *made);
    if (common.json) {
        auto document = describe_import(text, *made);
        if (writes) {
            document["file"] = options.out;
        }
        print_json(document);
    } else if (writes) {
        print("{} written: {} rows, from {} of {} rows of {}\n", options.out, made->rows.size(),
              made->num_imported, made->num_imported + made->leftovers.size(), options.file);
    } else if (!text.empty()) {
        print("{}", text);
    }
    if (text.empty()) {
        print_diagnostic(fmt::format("{}: no row has a counterpart here; nothing was written", options.file));
    }
    return made->leftovers.empty() && !text.empty() ? ExitCode::ok : ExitCode::check_failed;
}

}  // namespace

void add_import_csv(CLI::App& app, Invocation& invocation) {
    auto* command =
        app.add_subcommand("import-csv", "a table from tuned configurations in the public CSV form");
    auto options = std::make_shared<ImportOptions>();
    command->add_option("file", options->file, "the CSV file")->required();
    command->add_option("-o,--out", options->out,
                        "a new file, with its folders; standard output when left out");
    command->add_flag(
        "--fill", options->fill,
        "where the file has no row for some M, or for problems that demand determinism, take what the "
        "tables have for it now");
    invocation.manuals.describe(
        *command,
        {.text = "A row for token T becomes a bucket up to max_m T of fused_moe/mxmoe; each row's "
                 "cells are kept in the provenance, and whether its time is end to end or a sum "
                 "of stages. cu_num comes along: the table then serves such devices only.\n\nRows "
                 "that have no counterpart here are listed on stderr, with line and reason.",
         .examples = {{"kiln import-csv tuned.csv --fill -o tuned.json", "a table that serves every M"}},
         .exits = {{0, "every row of the file is in the table"},
                   {1, "some have no counterpart: the others are in it"},
                   {2,
                    "bad usage, a file that is malformed (nothing is written), or a file of the name of "
                    "--out is there"},
                   {3, "the table can not be written"},
                   {130, "interrupted"}}});
    command->callback([&invocation, options] {
        invocation.run = [&invocation, options] { return import_csv(*options, invocation.common); };
    });
}

}  // namespace kiln::cli
