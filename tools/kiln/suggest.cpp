// kiln suggest: a table with a row for a problem that no table has.

#include <fmt/format.h>

#include "runtime/operators/demands.hpp"
#include "runtime/service/suggestion.hpp"
#include "runtime/tables/writer.hpp"
#include "tools/kiln/command.hpp"
#include "tools/kiln/new_file.hpp"
#include "tools/kiln/output.hpp"
#include "tools/kiln/words.hpp"

namespace kiln::cli {
namespace {

struct SuggestOptions {
    std::vector<std::string> words;
    std::string target;
    std::string out;
    bool again = false;
};

ExitCode say_served(const tables::Row& row, const std::string& label, const SuggestOptions& options,
                    const CommonOptions& common) {
    if (common.json) {
        print_json({{"served", true},
                    {"row",
                     {{"origin", row.origin.text()},
                      {"layer", tables::to_text(row.layer)},
                      {"target", row.target.text()},
                      {"provenance", Json::parse(row.provenance.document)}}}});
    }
    print_diagnostic(fmt::format(
        "{} is served: by {} ({}), for {}, {}; {} (--again writes a row all the same)", label,
        row.origin.text(), tables::to_text(row.layer), row.target.text(), row.provenance.kind,
        options.out.empty() ? "nothing was written" : fmt::format("{} was not written", options.out)));
    return ExitCode::ok;
}

ExitCode suggest(const SuggestOptions& options, const CommonOptions& common) {
    const auto words = only_problem(options.words);
    if (!words) {
        return report(words.error(), common);
    }
    const auto& op = *words->op;
    const auto problem = operators::parse_problem(op, words->fields);
    if (!problem) {
        return report(problem.error(), common);
    }
    service::Overrides overrides;
    if (!options.target.empty()) {
        overrides.target = options.target;
    }
    const auto opened = open_service(common, overrides);
    if (!opened) {
        return report(opened.error(), common);
    }
    const auto& target = (*opened)->settings().target;
    const auto label =
        fmt::format("{} {} on {}", op.name(), operators::format_problem(op, *problem), target.text());
    const auto asked = operators::without_demands(op, *problem);
    const auto found = (*opened)->snapshot()->table->find(op.name(), asked, target);
    // A general row may admit a problem that it has no bucket for, or that the operator declines.
    const bool served = found.row != nullptr && op.judge(asked) && operators::row_at(*found.row, asked);
    if (served && !options.again) {
        return say_served(*found.row, label, options, common);
    }
    const auto row = service::suggest_row(op, *problem, target);
    if (!row) {
        return report(row.error(), common);
    }
    const auto text = tables::to_table_text({*row});
    if (!options.out.empty()) {
        if (const auto written = write_new_file(options.out, text); !written) {
            return report(written.error(), common);
        }
    }
    if (common.json) {
        Json document = {{"served", false}, {"table", Json::parse(text)}};
        if (!options.out.empty()) {
            document["file"] = options.out;
        }
        print_json(document);
    } else if (options.out.empty()) {
        print("{}", text);
    } else {
        print("{} written: a row for {}, M up to {}\n", options.out, label, row->buckets.back().max_m);
    }
    return ExitCode::ok;
}

}  // namespace

void add_suggest(CLI::App& app, Invocation& invocation) {
    auto* command = app.add_subcommand("suggest", "write a table for a problem that no table has");
    auto options = std::make_shared<SuggestOptions>();
    command->add_option("problem", options->words, "OPERATOR key=value...")->required();
    command->add_option("--target", options->target, "gfx950, gfx950:xnack-, sm_90a (KILN_TARGET)");
    command->add_option("--out", options->out, "a new file, with its folders; standard output when left out");
    command->add_flag("--again", options->again, "for a problem that is served, too");
    invocation.manuals.describe(
        *command,
        {.text = "A problem is OPERATOR key=value ..., where operators are linear, router, "
                 "moe_sort and fused_moe: linear n=4608 k=4096. The constants follow from the "
                 "shape; nothing is compiled or timed: kiln tune does that.",
         .examples = {{"kiln suggest linear n=48 k=384 --out ~/.config/kiln/shapes/my-model.json",
                       "where every service of this user finds it"}},
         .exits = {
             {0, "a row was written, or the problem is served already: then nothing is, and stderr says so"},
             {1, "the operator declines it"},
             {2, "bad usage, no constants that serve it on that target, or a file of that name is there"},
             {3, "the file can not be written"},
             {130, "interrupted"}}});
    command->callback([&invocation, options] {
        invocation.run = [&invocation, options] { return suggest(*options, invocation.common); };
    });
}

}  // namespace kiln::cli
