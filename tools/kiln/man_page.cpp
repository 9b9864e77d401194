#include "tools/kiln/man_page.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "base/file.hpp"
#include "runtime/service/preset_settings.hpp"
#include "runtime/service/version.hpp"
#include "tools/kiln/command.hpp"

namespace kiln::cli {
namespace {

// Text as a line of roff shows it: a hyphen that can be copied, no escape, and no request at its beginning.
std::string safe(std::string_view text) {
    std::string result;
    bool at_line_begin = true;
    for (const char c : text) {
        if (at_line_begin && (c == '.' || c == '\'')) {
            result += "\\&";
        }
        if (c == '\\') {
            result += "\\e";
        } else if (c == '-') {
            result += "\\-";
        } else {
            result += c;
        }
        at_line_begin = c == '\n';
    }
    return result;
}

std::string bold(std::string_view text) {
    return fmt::format("\\fB{}\\fR", safe(text));
}
std::string italic(std::string_view text) {
    return fmt::format("\\fI{}\\fR", safe(text));
}

std::string upper(std::string_view text) {
    std::string result(text);
    std::ranges::transform(result, result.begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return result;
}

// An entry of a list: what stands to the left, and its meaning.
std::string entry(std::string_view head, std::string_view meaning) {
    return fmt::format(".TP\n{}\n{}\n", head, safe(wrapped(meaning, 78)));
}

std::string positional(const CLI::Option& option) {
    const auto name = italic(option.get_name()) + (option.get_expected_max() > 1 ? "..." : "");
    return option.get_required() ? name : fmt::format("[{}]", name);
}

// Options of the command and of its groups of options.
std::vector<const CLI::Option*> options_of(const CLI::App& command) {
    std::vector<const CLI::Option*> options = command.get_options();
    for (const auto* group :
         command.get_subcommands([](const CLI::App* app) { return app->get_name().empty(); })) {
        const auto more = group->get_options();
        options.insert(options.end(), more.begin(), more.end());
    }
    return options;
}

std::string names_of(const CLI::Option& option) {
    std::string names;
    for (const auto& name : option.get_snames()) {
        names += (names.empty() ? "" : ", ") + bold("-" + name);
    }
    for (const auto& name : option.get_lnames()) {
        names += (names.empty() ? "" : ", ") + bold("--" + name);
    }
    return option.get_expected_max() == 0 ? names : names + " " + italic(option.get_type_name());
}

std::string list_options(const std::vector<const CLI::Option*>& options) {
    std::string text;
    for (const auto* option : options) {
        const auto preset = option->get_default_str();
        const auto meaning =
            option->get_description() + (preset.empty() ? "" : fmt::format(" (default {})", preset));
        text += entry(option->get_positional() ? positional(*option) : names_of(*option), meaning);
    }
    return text;
}

std::string synopsis(const CLI::App& command) {
    auto text = fmt::format("{} [{}]", bold(full_name(command)), italic("options"));
    for (const auto* option : command.get_options()) {
        if (option->get_positional()) {
            text += " " + positional(*option);
        } else if (option->get_required()) {
            text += " " + names_of(*option);
        }
    }
    return text + (commands_of(command).empty() ? "" : fmt::format(" {} ...", italic("command")));
}

std::string paragraphs(std::string_view text) {
    std::string result;
    while (!text.empty()) {
        const auto end = std::min(text.find("\n\n"), text.size());
        result += (result.empty() ? "" : ".PP\n") + safe(wrapped(text.substr(0, end), 78)) + "\n";
        text.remove_prefix(std::min(end + 2, text.size()));
    }
    return result;
}

// Every variable, as the library itself knows them.
std::string list_variables() {
    std::string text;
    for (const auto& setting : service::preset_settings()) {
        const auto preset =
            setting.value.empty() ? std::string() : fmt::format(" (default {})", setting.value);
        text += entry(bold(setting.variable), setting.what + preset);
    }
    return text;
}

std::string page_reference(const CLI::App& command) {
    return bold(full_name(command, "-")) + "(1)";
}

std::string see_also(const CLI::App& command) {
    std::vector<std::string> pages;
    if (command.get_parent() != nullptr) {
        pages.push_back(page_reference(*command.get_parent()));
    }
    for (const auto* part : commands_of(command)) {
        pages.push_back(page_reference(*part));
    }
    std::string text;
    for (const auto& page : pages) {
        text += page + (&page == &pages.back() ? "\n" : ",\n");
    }
    return text;
}

}  // namespace

std::string man_page(const CLI::App& command, const Manuals& manuals) {
    const auto& manual = manuals.of(command);
    const auto* program = &command;
    while (program->get_parent() != nullptr) {
        program = program->get_parent();
    }
    const auto name = full_name(command, "-");
    auto text = fmt::format(".TH {} 1 \"\" \"kiln {}\" \"kiln\"\n", safe(upper(name)), service::kVersion);
    const auto section = [&text](std::string_view title, const std::string& body) {
        text += body.empty() ? "" : fmt::format(".SH {}\n{}", title, body);
    };
    section("NAME", fmt::format("{} \\- {}\n", safe(name), safe(command.get_description())));
    section("SYNOPSIS", synopsis(command) + "\n");
    section("DESCRIPTION", paragraphs(manual.text));
    std::string commands;
    for (const auto* part : commands_of(command)) {
        commands += entry(bold(part->get_name()), part->get_description());
    }
    section("COMMANDS", commands);
    section("OPTIONS", list_options(options_of(command)));
    if (program != &command) {
        auto common = options_of(*program);
        std::erase(common, program->get_help_ptr());
        std::erase(common, program->get_version_ptr());
        section("OPTIONS OF EVERY COMMAND", list_options(common));
    }
    std::string exits;
    for (const auto& exit : manual.exits) {
        exits += entry(fmt::format("{}", exit.code), exit.meaning);
    }
    section("EXIT STATUS", exits);
    section("ENVIRONMENT", program == &command
                               ? list_variables()
                               : fmt::format("{} lists the variables.\n", page_reference(*program)));
    std::string examples;
    for (const auto& example : manual.examples) {
        examples += entry(bold(example.command), example.what);
    }
    section("EXAMPLES", examples);
    section("SEE ALSO", see_also(command));
    return text;
}

Result<void> write_man_pages(const CLI::App& program, const Manuals& manuals, const std::string& folder) {
    std::error_code error;
    if (std::filesystem::create_directories(folder, error); error) {
        return fail(ErrorCode::io, Stage::configure, system_message("create", folder, error.value()));
    }
    const auto path = std::filesystem::path(folder) / (full_name(program, "-") + ".1");
    if (auto written =
            publish_file(path, as_bytes(man_page(program, manuals)), Stage::configure, Readers::everyone);
        !written) {
        return written;
    }
    for (const auto* part : commands_of(program)) {
        if (auto written = write_man_pages(*part, manuals, folder); !written) {
            return written;
        }
    }
    return {};
}

void add_man_pages(CLI::App& app, Invocation& invocation) {
    auto* command = app.add_subcommand("man-pages", "write the manual pages of kiln and its commands");
    command->group("");
    auto folder = std::make_shared<std::string>();
    command->add_option("folder", *folder, "where to")->required();
    command->callback([&app, &invocation, folder] {
        invocation.run = [&app, &invocation, folder] {
            const auto written = write_man_pages(app, invocation.manuals, *folder);
            return written ? ExitCode::ok : report(written.error(), invocation.common);
        };
    });
}

}  // namespace kiln::cli
