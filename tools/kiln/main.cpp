// kiln: warms, checks, explains and shows specialised kernels.

#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <exception>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "kiln/kiln.h"
#include "tools/kiln/command.hpp"
#include "tools/kiln/output.hpp"

namespace {

using kiln::cli::ExitCode;

// The store is consistent at every instant and the workers end when their input does, so there is nothing to
// clean up.
extern "C" void on_interrupt(int) {
    _exit(static_cast<int>(ExitCode::interrupted));
}

constexpr const char* kFooter =
    "A problem is OPERATOR key=value ..., for example: linear n=4608 k=4096\n"
    "Exit codes: 0 all well; 1 something failed its check; 2 bad usage or bad input;\n"
    "3 the environment lacks something (kiln doctor says what); 130 interrupted";

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGINT, on_interrupt);
    std::signal(SIGTERM, on_interrupt);
    // A reader that went away (kiln ls | head) ends the program by a failed write, not by a signal in the
    // middle of a put.
    std::signal(SIGPIPE, SIG_IGN);

    CLI::App app("GPU kernels as source templates, specialised on demand, cached, launched", "kiln");
    app.set_version_flag("--version", fmt::format("kiln {}.{}.{}", KILN_VERSION_MAJOR, KILN_VERSION_MINOR,
                                                  KILN_VERSION_PATCH));
    app.require_subcommand(1);
    app.fallthrough();
    app.footer(kFooter);

    kiln::cli::Invocation invocation;
    app.add_flag("--json", invocation.common.json,
                 "print one JSON document on stdout and nothing else there");
    app.add_option("--device", invocation.common.device, "auto, hip or sim (KILN_DEVICE)");
    app.add_option("--cache-dir", invocation.common.cache_dir, "folder of the store (KILN_CACHE_DIR)");

    kiln::cli::add_warm(app, invocation);
    kiln::cli::add_verify(app, invocation);
    kiln::cli::add_explain(app, invocation);
    kiln::cli::add_show(app, invocation);
    kiln::cli::add_ls(app, invocation);
    kiln::cli::add_doctor(app, invocation);

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        // --help and --version come this way too, with exit code 0.
        return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::bad_input);
    }
    try {
        return static_cast<int>(invocation.run());
    } catch (const std::exception& error) {
        kiln::cli::print_diagnostic(fmt::format("unexpected: {}", error.what()));
        return static_cast<int>(ExitCode::check_failed);
    }
}
