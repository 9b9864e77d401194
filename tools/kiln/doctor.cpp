// kiln doctor: what kiln finds on this machine, every setting with its origin, and whether a kernel can be
// built.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/kiln/command.hpp"
#include "tools/kiln/output.hpp"

namespace kiln::cli {
namespace {

struct Finding {
    std::string what;
    std::string where;
    bool well = true;
};

void look_at_compiler(service::Service& service, std::vector<Finding>& findings) {
    const auto compiler = service.builder().compiler();
    if (!compiler) {
        findings.push_back({"compiler", compiler.error().message, false});
        return;
    }
    for (const auto& finding : (*compiler)->findings()) {
        findings.push_back({finding.what, finding.where});
    }
    const auto identity = (*compiler)->identity();
    findings.push_back(identity ? Finding{"compiler identity", identity->document}
                                : Finding{"compiler identity", identity.error().message, false});
    const auto& target = service.settings().target.text();
    // A whole round trip, since a compiler that is there may still not know the target.
    const auto probed = (*compiler)->probe(target);
    findings.push_back(probed ? Finding{"compiles for " + target, "yes"}
                              : Finding{"compiles for " + target, probed.error().message, false});
}

void look_at_devices(service::Service& service, std::vector<Finding>& findings) {
    const auto devices = service.devices();
    if (!devices) {
        findings.push_back({"devices", devices.error().message, false});
        return;
    }
    for (const auto& device : *devices) {
        const auto& info = device->info();
        findings.push_back(
            {fmt::format("device {}", info.ordinal),
             fmt::format("{}, {}, {} compute units, {}{}", info.name, info.target, info.num_compute_units,
                         short_bytes(info.memory_bytes), info.simulated ? ", simulated" : "")});
    }
}

ExitCode doctor(const CommonOptions& common) {
    auto opened = open_service(common);
    if (!opened) {
        return report(opened.error(), common);
    }
    auto& service = **opened;
    std::vector<Finding> findings;
    const auto* store = service.builder().store();
    findings.push_back(store != nullptr
                           ? Finding{"cache", store->folder().string()}
                           : Finding{"cache",
                                     fmt::format("{} can not be used: kiln keeps what it compiles in memory",
                                                 service.settings().cache_dir.string()),
                                     false});
    look_at_compiler(service, findings);
    look_at_devices(service, findings);

    bool well = true;
    Json found = Json::array();
    Json settings = Json::array();
    for (const auto& finding : findings) {
        well = well && finding.well;
        found.push_back({{"what", finding.what}, {"where", finding.where}, {"well", finding.well}});
    }
    for (const auto& setting : service.settings().listed) {
        settings.push_back({{"variable", setting.variable},
                            {"value", setting.value},
                            {"origin", service::to_text(setting.origin)},
                            {"what", setting.what}});
    }
    if (common.json) {
        print_json({{"well", well},
                    {"findings", found},
                    {"settings", settings},
                    {"warnings", service.settings().warnings}});
    } else {
        for (const auto& finding : findings) {
            print("{} {}: {}\n", finding.well ? "  ok " : "  !! ", finding.what, finding.where);
        }
        print("\n");
        TextTable table({"variable", "value", "origin", "what"});
        for (const auto& setting : service.settings().listed) {
            table.add({setting.variable, setting.value.empty() ? "(unset)" : setting.value,
                       std::string(service::to_text(setting.origin)), setting.what});
        }
        table.print();
    }
    return well ? ExitCode::ok : ExitCode::environment;
}

}  // namespace

void add_doctor(CLI::App& app, Invocation& invocation) {
    auto* command = app.add_subcommand("doctor", "say what kiln finds on this machine, and every setting");
    command->callback(
        [&invocation] { invocation.run = [&invocation] { return doctor(invocation.common); }; });
}

}  // namespace kiln::cli
