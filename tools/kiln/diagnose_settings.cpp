// Of kiln doctor: the variables, and what they switch off.

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/service/tables.hpp"
#include "tools/kiln/diagnosis.hpp"

namespace kiln::cli {
namespace {

// The variable that a message of read_settings() begins with: "KILN_JIT (environment): expected ...".
std::string variable_of(const std::string& message) {
    return message.substr(0, message.find(" ("));
}

bool is_of_environment(const std::string& message) {
    return message.find(fmt::format(" ({}): ", service::to_text(service::Origin::environment))) !=
           std::string::npos;
}

void note_switches(const service::Settings& settings, Findings& findings) {
    if (!settings.jit) {
        findings.push_back({Verdict::note, "KILN_JIT",
                            "off: nothing is compiled, a kernel that is not in the cache is an error", "",
                            "unset it to compile again"});
    }
    if (!settings.disable.empty()) {
        findings.push_back({Verdict::note, "KILN_DISABLE",
                            fmt::format("declined: {}", fmt::join(settings.disable, ", ")), "",
                            "unset it to use them again"});
    }
}

}  // namespace

std::string_view to_text(Verdict verdict) {
    switch (verdict) {
        case Verdict::ok:
            return "ok";
        case Verdict::note:
            return "note";
        case Verdict::wrong:
            break;
    }
    return "wrong";
}

Result<service::Settings> diagnose_settings(const service::Overrides& overrides, Findings& findings) {
    auto environment = service::process_environment();
    auto settings = service::read_settings(overrides, environment);
    while (!settings && is_of_environment(settings.error().message)) {
        const auto variable = variable_of(settings.error().message);
        findings.push_back({Verdict::wrong, variable, settings.error().message, "a value that it can have",
                            fmt::format("correct or unset {}; what follows leaves it out", variable),
                            settings.error().code});
        const auto removed =
            std::erase_if(environment, [&](const auto& entry) { return entry.starts_with(variable + "="); });
        if (removed == 0) {
            break;
        }
        settings = service::read_settings(overrides, environment);
    }
    if (!settings) {
        return settings;
    }
    for (const auto& warning : settings->warnings) {
        findings.push_back({Verdict::note, "settings", warning, "", "correct or unset it"});
    }
    note_switches(*settings, findings);
    return settings;
}

void diagnose_tables(const service::Settings& settings, Findings& findings) {
    constexpr std::size_t kMostFaults = 20;
    const auto loaded = service::load_tables(settings);
    if (!loaded) {
        findings.push_back(
            {Verdict::wrong, "shape tables", loaded.error().message, "", "", loaded.error().code});
        return;
    }
    for (const auto& fault : loaded->faults) {
        if (&fault - loaded->faults.data() == kMostFaults) {
            findings.push_back({Verdict::wrong, "shape tables",
                                fmt::format("{} more faults", loaded->faults.size() - kMostFaults), "",
                                "kiln check-table lists them all", ErrorCode::bad_input});
            break;
        }
        findings.push_back({Verdict::wrong, "shape tables", fault.text(), "",
                            "correct the file or take it away: kiln takes its tables whole or not at all",
                            ErrorCode::bad_input});
    }
    for (const auto& warning : loaded->warnings) {
        findings.push_back({Verdict::note, "shape tables", warning.text(), "", ""});
    }
    const auto& layers = loaded->table.layers();
    const auto list = [&](tables::LayerKind kind, const std::string& place) {
        const auto read = std::ranges::find_if(
            layers, [&](const auto& layer) { return layer.kind == kind && layer.place == place; });
        findings.push_back(
            {Verdict::ok, fmt::format("shape tables, {}", tables::to_text(kind)),
             fmt::format("{}: {}", place.empty() ? "in the library" : place,
                         read == layers.end()
                             ? "nothing there"
                             : fmt::format("{} files, {} rows", read->files.size(), read->rows.size())),
             "", ""});
    };
    for (const auto& place : settings.table_places) {
        list(place.kind, place.path.string());
    }
    list(tables::LayerKind::shipped, "");
}

}  // namespace kiln::cli
