// kiln export-csv: rows of shape tables in the public form of tuned configurations.

#include <fmt/format.h>

#include "runtime/tuned_config/export.hpp"
#include "tools/kiln/command.hpp"
#include "tools/kiln/new_file.hpp"
#include "tools/kiln/output.hpp"
#include "tools/kiln/words.hpp"

namespace kiln::cli {
namespace {

struct ExportOptions {
    std::vector<std::string> tables;
    std::string out;
    std::string cu_num;
};

Json describe_export(const tuned_config::Export& made) {
    Json unwritten = Json::array();
    for (const auto& one : made.unwritten) {
        unwritten.push_back({{"origin", one.origin}, {"what", one.what}, {"reason", one.reason}});
    }
    return {{"rows", made.num_rows},
            {"without_counterpart", std::move(unwritten)},
            {"rows_of_other_operators", made.num_of_other_operators}};
}

ExitCode export_csv(const ExportOptions& options, const CommonOptions& common) {
    const auto cu_num = parse_cu_num(options.cu_num);
    if (!cu_num) {
        return report(cu_num.error(), common);
    }
    service::Overrides overrides;
    if (!options.tables.empty()) {
        overrides.tables = options.tables;
    }
    const auto opened = open_service(common, std::move(overrides));
    if (!opened) {
        return report(opened.error(), common);
    }
    const auto made = tuned_config::export_csv((*opened)->rows({}), *cu_num);
    if (!options.out.empty()) {
        if (const auto written = write_new_file(options.out, made.text); !written) {
            return report(written.error(), common);
        }
    }
    for (const auto& one : made.unwritten) {
        print_diagnostic(fmt::format("{}: no counterpart: {}{}{}", one.origin, one.what,
                                     one.what.empty() ? "" : ": ", one.reason));
    }
    if (made.num_of_other_operators > 0) {
        print_diagnostic(fmt::format("{} rows are of operators that the form knows nothing of",
                                     made.num_of_other_operators));
    }
    if (common.json) {
        auto document = describe_export(made);
        if (options.out.empty()) {
            document["csv"] = made.text;
        } else {
            document["file"] = options.out;
        }
        print_json(document);
    } else if (options.out.empty()) {
        print("{}", made.text);
    } else {
        print("{} written: {} rows\n", options.out, made.num_rows);
    }
    return made.unwritten.empty() ? ExitCode::ok : ExitCode::check_failed;
}

}  // namespace

void add_export_csv(CLI::App& app, Invocation& invocation) {
    auto* command = app.add_subcommand("export-csv", "rows of fused_moe/mxmoe in the public CSV form");
    auto options = std::make_shared<ExportOptions>();
    command->add_option("table", options->tables, "tables or folders of them; every layer when left out");
    command->add_option("-o,--out", options->out,
                        "a new file, with its folders; standard output when left out");
    command->add_option("--cu-num", options->cu_num,
                        "what stands in that column for rows that do not say; empty when left out");
    invocation.manuals.describe(
        *command, {.text = "What import-csv made is written as it was. Other buckets are written for each "
                           "power of two that they serve, with times only where they were measured, end to "
                           "end; what a cost model says is not.\n\nWhat the form has no words for is listed "
                           "on stderr, with the reason; rows of other operators are counted.",
                   .examples = {{"kiln export-csv model.json -o tuned.csv", "one table's rows"}},
                   .exits = {{0, "all of fused_moe is in the file"},
                             {1, "some has no counterpart in the form: the rest is in it"},
                             {2, "bad usage, a faulty table, or a file of the name of --out is there"},
                             {3, "the file can not be written"},
                             {130, "interrupted"}}});
    command->callback([&invocation, options] {
        invocation.run = [&invocation, options] { return export_csv(*options, invocation.common); };
    });
}

}  // namespace kiln::cli
