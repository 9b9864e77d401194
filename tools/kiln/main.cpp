// kiln: warms, checks, explains and shows specialised kernels.

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "runtime/service/version.hpp"
#include "tools/kiln/command.hpp"
#include "tools/kiln/interrupt.hpp"
#include "tools/kiln/output.hpp"

namespace {

using kiln::cli::ExitCode;

// Of the program as a whole.
kiln::cli::Manual make_manual() {
    return {
        .text =
            "kiln keeps GPU kernels as source templates, specialises one the first time that a shape is "
            "asked "
            "for, compiles it, keeps the code object on disk and launches it. Shape tables, files of JSON "
            "that "
            "anyone can edit, say which kernel serves which problem; nothing here needs a GPU, since a "
            "simulator of the gfx950 comes along.\n\n"
            "A problem is OPERATOR key=value ..., where operators are linear, router, moe_sort and "
            "fused_moe: "
            "linear n=4608 k=4096. With no TABLE named, a command uses the shipped tables and the user's. "
            "kiln COMMAND --help, or the page kiln-COMMAND(1), says the rest of each.",
        .examples = {{"kiln doctor", "what kiln finds on this machine, and what it does without"},
                     {"kiln warm --target gfx950", "compile ahead what the tables name"},
                     {"kiln verify linear n=4608 k=4096", "run it and compare with a reference"}},
        .exits = {{0, "all well"},
                  {1, "something failed its check"},
                  {2, "bad usage or bad input"},
                  {3, "the environment lacks something (kiln doctor says what)"},
                  {130, "interrupted"}}};
}

// Of a command's own help, which stands alone.
constexpr const char* kCommonOptions =
    "\nOf every command: --json (one JSON document on stdout and nothing else there, errors too),\n"
    "--device auto|hip|cuda|sim (KILN_DEVICE), --cache-dir FOLDER (KILN_CACHE_DIR)";

// A result that did not arrive is no result; but a reader that has seen enough (kiln ls | head) is content.
ExitCode finish(ExitCode code) {
    const int error = kiln::cli::flush_results();
    if (error == 0 || error == EPIPE) {
        return code;
    }
    kiln::cli::print_diagnostic("standard output could not be written");
    return std::max(code, ExitCode::environment);
}

ExitCode run(kiln::cli::Invocation& invocation) {
    try {
        return invocation.run();
    } catch (const std::exception& error) {
        return kiln::cli::report(
            {kiln::ErrorCode::internal, kiln::Stage::configure, fmt::format("unexpected: {}", error.what())},
            invocation.common);
    }
}

// Parsing stops at the first fault, so --json may stand behind it.
bool wants_json(int argc, char** argv) {
    return std::any_of(argv + 1, argv + argc,
                       [](const char* word) { return std::strcmp(word, "--json") == 0; });
}

// "--cache-dir=" would take the next word for its value, an option even.
const char* find_empty_value(int argc, char** argv) {
    const auto end = argv + argc;
    const auto found = std::find_if(argv + 1, end, [](std::string_view word) {
        return word.starts_with("--") && word.find('=') == word.size() - 1;
    });
    return found == end ? nullptr : *found;
}

// An empty value would count as none given, and "$UNSET" ask for what a default does; a flag takes no value.
void refuse_odd_values(CLI::App& app) {
    for (auto* option : app.get_options()) {
        if (option->get_expected_max() == 0) {
            option->disable_flag_override();
        } else {
            option->type_name("VALUE");
            option->check([](const std::string& value) {
                return value.empty() ? std::string("expected a value, found an empty one") : std::string();
            });
        }
    }
    for (auto* part : app.get_subcommands({})) {  // commands, and groups of options
        refuse_odd_values(*part);
    }
}

}  // namespace

int main(int argc, char** argv) {
    kiln::cli::catch_interrupts(wants_json(argc, argv));
    // A reader that went away (kiln ls | head) ends the program by a failed write, not by a signal in the
    // middle of a put.
    std::signal(SIGPIPE, SIG_IGN);

    CLI::App app("GPU kernels as source templates, specialised on demand, cached, launched", "kiln");
    app.set_version_flag("--version", fmt::format("kiln {}", kiln::service::kVersion));
    app.require_subcommand(0, 1);
    app.fallthrough();
    kiln::cli::Invocation invocation;
    invocation.common.json = wants_json(argc, argv);
    invocation.manuals.describe(app, make_manual());

    app.add_flag("--json", invocation.common.json,
                 "print one JSON document on stdout and nothing else there");
    app.add_option("--device", invocation.common.device, "auto, hip, cuda or sim (KILN_DEVICE)")
        ->check([](const std::string& value) {
            return value == "auto" || value == "hip" || value == "cuda" || value == "sim"
                       ? std::string()
                       : fmt::format("expected auto, hip, cuda or sim, found \"{}\"", value);
        });
    app.add_option("--cache-dir", invocation.common.cache_dir, "folder of the store (KILN_CACHE_DIR)");

    kiln::cli::add_warm(app, invocation);
    kiln::cli::add_verify(app, invocation);
    kiln::cli::add_explain(app, invocation);
    kiln::cli::add_check_table(app, invocation);
    kiln::cli::add_suggest(app, invocation);
    kiln::cli::add_import_csv(app, invocation);
    kiln::cli::add_export_csv(app, invocation);
    kiln::cli::add_show(app, invocation);
    kiln::cli::add_tune(app, invocation);
    kiln::cli::add_report(app, invocation);
    kiln::cli::add_ls(app, invocation);
    kiln::cli::add_stats(app, invocation);
    kiln::cli::add_prune(app, invocation);
    kiln::cli::add_clear(app, invocation);
    kiln::cli::add_bundle(app, invocation);
    kiln::cli::add_doctor(app, invocation);
    kiln::cli::add_man_pages(app, invocation);

    refuse_odd_values(app);
    for (auto* command : app.get_subcommands({})) {
        command->footer(command->get_footer() + kCommonOptions);
        for (auto* part : command->get_subcommands({})) {
            part->footer(part->get_footer() + kCommonOptions);
        }
    }

    if (const char* word = find_empty_value(argc, argv)) {
        const auto code =
            kiln::cli::report({kiln::ErrorCode::bad_input, kiln::Stage::configure,
                               fmt::format("{}: expected a value behind the =, found none", word)},
                              invocation.common);
        return static_cast<int>(finish(code));
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) {  // --help and --version come this way too
            std::ostringstream text;
            app.exit(error, text, text);
            kiln::cli::print("{}", text.str());
            return static_cast<int>(finish(ExitCode::ok));
        }
        const auto code =
            kiln::cli::report({kiln::ErrorCode::bad_input, kiln::Stage::configure,
                               fmt::format("{} (kiln --help says what there is)", error.what())},
                              invocation.common);
        return static_cast<int>(finish(code));
    }
    if (!invocation.run) {
        const auto code = kiln::cli::report({kiln::ErrorCode::bad_input, kiln::Stage::configure,
                                             "expected a command, found none (kiln --help lists them)"},
                                            invocation.common);
        return static_cast<int>(finish(code));
    }
    if (const auto fit = invocation.metrics.check(); !fit) {
        return static_cast<int>(finish(kiln::cli::report(fit.error(), invocation.common)));
    }
    const auto code = finish(run(invocation));
    if (const auto written = invocation.metrics.write(code); !written) {
        kiln::cli::print_diagnostic(written.error().message);
        return static_cast<int>(std::max(code, ExitCode::environment));
    }
    return static_cast<int>(code);
}
