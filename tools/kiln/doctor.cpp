// kiln doctor: what kiln finds on this machine, what it has to do without and why, and every setting with its
// origin.

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/service/log_settings.hpp"
#include "tools/kiln/command.hpp"
#include "tools/kiln/diagnosis.hpp"
#include "tools/kiln/output.hpp"

namespace kiln::cli {
namespace {

Json describe(const Finding& finding) {
    Json object = {{"verdict", to_text(finding.verdict)}, {"what", finding.what}, {"found", finding.found}};
    if (!finding.expected.empty()) {
        object["expected"] = finding.expected;
    }
    if (!finding.advice.empty()) {
        object["advice"] = finding.advice;
    }
    return object;
}

Json describe(const service::Setting& setting) {
    return {{"variable", setting.variable},
            {"value", setting.value},
            {"origin", service::to_text(setting.origin)},
            {"what", setting.what}};
}

void print_finding(const Finding& finding) {
    const char* mark = finding.verdict == Verdict::ok ? "ok" : finding.verdict == Verdict::note ? "--" : "!!";
    print("  {} {}: {}\n", mark, finding.what, finding.found);
    if (!finding.expected.empty()) {
        print("       expected: {}\n", finding.expected);
    }
    if (!finding.advice.empty()) {
        print("       to do: {}\n", finding.advice);
    }
}

void print_report(const Findings& findings, const service::Settings& settings) {
    for (const auto& finding : findings) {
        print_finding(finding);
    }
    print("\n");
    TextTable table({"variable", "value", "origin", "what"});
    for (const auto& setting : settings.listed) {
        table.add({setting.variable, setting.value.empty() ? "(unset)" : setting.value,
                   std::string(service::to_text(setting.origin)), setting.what});
    }
    table.print();
}

ExitCode doctor(const CommonOptions& common) {
    Findings findings;
    const auto settings = diagnose_settings(overrides_of(common), findings);
    if (!settings) {
        return report(settings.error(), common);
    }
    service::adopt_log(*settings);
    diagnose_tables(*settings, findings);
    diagnose_cache(*settings, findings);
    Findings of_devices;  // told last
    const auto targets = diagnose_devices(*settings, of_devices);
    diagnose_compiler(*settings, targets, findings);
    std::move(of_devices.begin(), of_devices.end(), std::back_inserter(findings));

    auto code = ExitCode::ok;
    for (const auto& finding : findings) {
        if (finding.verdict == Verdict::wrong) {
            // What does not work here is the machine's fault, whichever check found it; but a file or a
            // variable that can not be meant is its author's.
            code = std::max(
                code, finding.code == ErrorCode::bad_input ? ExitCode::bad_input : ExitCode::environment);
        }
    }
    if (common.json) {
        Json found = Json::array();
        for (const auto& finding : findings) {
            found.push_back(describe(finding));
        }
        Json listed = Json::array();
        for (const auto& setting : settings->listed) {
            listed.push_back(describe(setting));
        }
        print_json({{"well", code == ExitCode::ok}, {"findings", found}, {"settings", listed}});
    } else {
        print_report(findings, *settings);
    }
    return code;
}

}  // namespace

void add_doctor(CLI::App& app, Invocation& invocation) {
    auto* command = app.add_subcommand(
        "doctor", "say what kiln finds on this machine, what it does without and why, and every setting");
    invocation.manuals.describe(
        *command, {.text = "Each finding is ok, a note (--) or wrong (!!), with what was expected and what "
                           "to do: variables, tables, cache, compilers and devices. At the end every "
                           "setting with its value and where that came from.",
                   .examples = {{"kiln doctor", "for a person"}, {"kiln doctor --json", "for a program"}},
                   .exits = {{0, "nothing is wrong"},
                             {2, "bad usage, or a variable or a table is malformed"},
                             {3, "the machine lacks something"},
                             {130, "interrupted"}}});
    command->callback(
        [&invocation] { invocation.run = [&invocation] { return doctor(invocation.common); }; });
}

}  // namespace kiln::cli
