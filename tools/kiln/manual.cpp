#include "tools/kiln/manual.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace kiln::cli {
namespace {

std::string help_text(const Manual& manual) {
    std::string text;
    for (std::string_view rest = manual.text; !rest.empty();) {
        const auto end = std::min(rest.find("\n\n"), rest.size());
        text += wrapped(rest.substr(0, end)) + "\n";
        rest.remove_prefix(std::min(end + 2, rest.size()));
    }
    if (!manual.examples.empty()) {
        text += "Examples:\n";
    }
    for (const auto& example : manual.examples) {
        text += fmt::format("  {}\n      {}\n", example.command, example.what);
    }
    text += "Exit codes:";
    for (const auto& exit : manual.exits) {
        text += fmt::format("{} {} {}", &exit == manual.exits.data() ? "" : ";\n ", exit.code, exit.meaning);
    }
    return text;
}

}  // namespace

void Manuals::describe(CLI::App& command, Manual manual) {
    command.footer(help_text(manual));
    manuals_.insert_or_assign(&command, std::move(manual));
}

const Manual& Manuals::of(const CLI::App& command) const {
    return manuals_.at(&command);
}

std::string full_name(const CLI::App& command, std::string_view separator) {
    const auto* parent = command.get_parent();
    return parent == nullptr
               ? command.get_name()
               : fmt::format("{}{}{}", full_name(*parent, separator), separator, command.get_name());
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
    std::vector<const CLI::App*> commands;
    for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        // Groups of options have no name, what is not for a person no group.
        if (!command->get_name().empty() && !command->get_group().empty()) {
            commands.push_back(command);
        }
    }
    return commands;
}

std::string wrapped(std::string_view paragraph, std::size_t width) {
    std::string text;
    std::size_t column = 0;
    while (!paragraph.empty()) {
        const auto word = paragraph.substr(0, paragraph.find_first_of(" \n"));
        paragraph.remove_prefix(std::min(word.size() + 1, paragraph.size()));
        if (word.empty()) {
            continue;
        }
        const bool fits = column + 1 + word.size() <= width;
        text += column == 0 ? "" : fits ? " " : "\n";
        column = (column == 0 || !fits ? 0 : column + 1) + word.size();
        text += word;
    }
    return text;
}

}  // namespace kiln::cli
