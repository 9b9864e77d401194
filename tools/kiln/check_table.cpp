// kiln check-table: every fault of shape tables, with its place.

#include <fmt/format.h>

#include "runtime/service/tables.hpp"
#include "tools/kiln/command.hpp"
#include "tools/kiln/output.hpp"

namespace kiln::cli {
namespace {

Json describe(const std::vector<tables::Fault>& faults) {
    Json list = Json::array();
    for (const auto& fault : faults) {
        list.push_back({{"file", fault.source},
                        {"line", fault.position.line},
                        {"column", fault.position.column},
                        {"pointer", fault.pointer},
                        {"expected", fault.expected},
                        {"found", fault.found}});
    }
    return list;
}

Json describe(const std::vector<tables::RowLayer>& layers) {
    Json list = Json::array();
    for (const auto& layer : layers) {
        list.push_back({{"layer", tables::to_text(layer.kind)},
                        {"place", layer.place},
                        {"files", layer.files},
                        {"rows", layer.rows.size()}});
    }
    return list;
}

void print_findings(const tables::LoadedTable& loaded) {
    for (const auto& fault : loaded.faults) {
        print("{}\n", fault.text());
    }
    for (const auto& warning : loaded.warnings) {
        print("warning: {}\n", warning.text());
    }
    std::size_t files = 0;
    for (const auto& layer : loaded.table.layers()) {
        files += layer.files.size();
    }
    print("{}: {} files, {} sound rows, {} faults, {} warnings\n",
          loaded.faults.empty() ? "well" : "not well", files, loaded.table.rows().size(),
          loaded.faults.size(), loaded.warnings.size());
}

ExitCode check_table(const std::vector<std::string>& tables, const CommonOptions& common) {
    service::Overrides overrides;
    if (!tables.empty()) {
        overrides.tables = tables;
    }
    const auto settings = read_settings(common, std::move(overrides));
    if (!settings) {
        return report(settings.error(), common);
    }
    const auto loaded = service::load_tables(*settings);
    if (!loaded) {
        return report(loaded.error(), common);
    }
    const bool well = loaded->faults.empty();
    if (common.json) {
        print_json({{"well", well},
                    {"layers", describe(loaded->table.layers())},
                    {"faults", describe(loaded->faults)},
                    {"warnings", describe(loaded->warnings)}});
    } else {
        print_findings(*loaded);
    }
    return well ? ExitCode::ok : ExitCode::bad_input;
}

}  // namespace

void add_check_table(CLI::App& app, Invocation& invocation) {
    auto* command = app.add_subcommand("check-table", "list every fault of shape tables, with its place");
    auto tables = std::make_shared<std::vector<std::string>>();
    command->add_option("table", *tables, "tables or folders of them; every layer when left out");
    invocation.manuals.describe(
        *command, {.text = "Every table is held to the schema and to what its templates can do; each fault "
                           "comes with file, line and column, or a JSON pointer. kiln takes its tables "
                           "whole or not at all, so one fault keeps a service from opening.",
                   .examples = {{"kiln check-table model.json", "one table"},
                                {"kiln check-table --json",
                                 "every table that a service here would read, for a program"}},
                   .exits = {{0, "no fault"},
                             {2, "bad usage, or a table has faults"},
                             {3, "a file can not be read"},
                             {130, "interrupted"}}});
    command->callback([&invocation, tables] {
        invocation.run = [&invocation, tables] { return check_table(*tables, invocation.common); };
    });
}

}  // namespace kiln::cli
