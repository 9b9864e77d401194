// What every command of the kiln program shares: exit codes, common options, how a command is registered and
// how it ends.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "runtime/operators/decline.hpp"
#include "runtime/service/service.hpp"
#include "tools/kiln/interrupt.hpp"
#include "tools/kiln/manual.hpp"
#include "tools/kiln/run_metrics.hpp"

namespace kiln::cli {

// Documented in the README and printed by `kiln --help`; never change the values.
enum class ExitCode : int {
    ok = 0,
    check_failed = 1,  // something was compiled, loaded or computed, and failed its check
    bad_input = 2,     // the command line, a table, or an environment variable
    environment = 3,   // the machine lacks something: a compiler, a device, a folder that can be written
    interrupted = 130,
};

// Options that every command takes. They go before the environment.
struct CommonOptions {
    bool json = false;
    std::string device;
    std::string cache_dir;
};

// A command does its work in a callback and leaves its exit code here.
struct Invocation {
    CommonOptions common;
    ExitCode exit_code = ExitCode::ok;
    std::function<ExitCode()> run;  // set by the command that the command line chose
    // Of a command that keeps what it has when it is interrupted; lives until its output has arrived.
    std::unique_ptr<Grace> grace;
    // Written when the command has ended, where a file of them is asked for.
    RunMetrics metrics;
    // Of the program and every command: what each help ends with.
    Manuals manuals;
};

// Each adds one command, with its options, to the program. `invocation` outlives the parse and the run.
void add_warm(CLI::App& app, Invocation& invocation);
void add_verify(CLI::App& app, Invocation& invocation);
void add_check_table(CLI::App& app, Invocation& invocation);
void add_suggest(CLI::App& app, Invocation& invocation);
void add_import_csv(CLI::App& app, Invocation& invocation);
void add_export_csv(CLI::App& app, Invocation& invocation);
void add_explain(CLI::App& app, Invocation& invocation);
void add_show(CLI::App& app, Invocation& invocation);
void add_tune(CLI::App& app, Invocation& invocation);
void add_report(CLI::App& app, Invocation& invocation);
void add_ls(CLI::App& app, Invocation& invocation);
void add_stats(CLI::App& app, Invocation& invocation);
void add_prune(CLI::App& app, Invocation& invocation);
void add_clear(CLI::App& app, Invocation& invocation);
void add_bundle(CLI::App& app, Invocation& invocation);
void add_doctor(CLI::App& app, Invocation& invocation);
// Not for a person: writes the manual pages of all of these when kiln is built.
void add_man_pages(CLI::App& app, Invocation& invocation);

// The option --metrics-file of a command that takes long; `results` as RunMetrics::begin() has them.
void add_metrics_file(CLI::App& command, Invocation& invocation, std::vector<std::string_view> results);

// What the common options say in place of the environment.
[[nodiscard]] service::Overrides overrides_of(const CommonOptions& common, service::Overrides overrides = {});

// What the common options and the environment say; `overrides` carries what the command adds.
[[nodiscard]] Result<service::Settings> read_settings(const CommonOptions& common,
                                                      service::Overrides overrides = {});
// The service as the common options and the environment have it; `overrides` carries what the command adds.
[[nodiscard]] Result<std::unique_ptr<service::Service>> open_service(const CommonOptions& common,
                                                                     service::Overrides overrides = {});

[[nodiscard]] ExitCode exit_code_of(const Error& error);

// Says what went wrong on stderr (with --json, as a document on stdout too) and returns the exit code for it.
[[nodiscard]] ExitCode report(const Error& error, const CommonOptions& common);
[[nodiscard]] ExitCode report(const operators::Refusal& refusal, const CommonOptions& common);

}  // namespace kiln::cli
