#include "tools/kiln/cache_view.hpp"

#include <ctime>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/log.hpp"
#include "runtime/service/log_settings.hpp"

namespace kiln::cli {
namespace {

// "3 entries, 1 temporary file", without what there is none of.
std::string counted(const cache::PruneReport& report) {
    std::string text = fmt::format("{} entries", report.removed.size());
    const auto add = [&text](std::uint64_t count, std::string_view what) {
        if (count > 0) {
            text += fmt::format(", {} {}", count, what);
        }
    };
    add(report.temporaries, "temporary files");
    add(report.locks, "lock files");
    add(report.damaged, "damaged files");
    return text;
}

}  // namespace

std::vector<const cache::Layer*> CacheView::all_places() const {
    std::vector<const cache::Layer*> all;
    if (places.store != nullptr) {
        all.push_back(places.store.get());
    }
    for (const auto& layer : places.layers) {
        all.push_back(layer.get());
    }
    return all;
}

Result<CacheView> open_cache_view(const CommonOptions& common) {
    service::Overrides overrides;
    if (!common.device.empty()) {
        overrides.device = common.device;
    }
    if (!common.cache_dir.empty()) {
        overrides.cache_dir = common.cache_dir;
    }
    auto settings = service::read_settings(overrides, service::process_environment());
    if (!settings) {
        return fail(settings);
    }
    service::adopt_log(*settings);
    for (const auto& warning : settings->warnings) {
        log::warning("{}", warning);
    }
    auto places = service::open_cache(*settings, service::Create::no);
    if (places.store_fault) {
        return tl::unexpected(*std::move(places.store_fault));
    }
    service::log_faults(places);
    return CacheView{*std::move(settings), std::move(places)};
}

std::string to_text(std::chrono::system_clock::time_point time) {
    const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
    std::tm broken_down{};
    ::gmtime_r(&seconds, &broken_down);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", broken_down.tm_year + 1900,
                       broken_down.tm_mon + 1, broken_down.tm_mday, broken_down.tm_hour, broken_down.tm_min,
                       broken_down.tm_sec);
}

Json describe_entry(const cache::EntrySummary& summary, const Result<cache::StoredEntry>& stored) {
    Json object = {{"key", summary.key.hex()},
                   {"bytes", summary.bytes},
                   {"path", summary.path.string()},
                   {"last_used", to_text(summary.last_used)}};
    if (!stored) {
        object["error"] = to_json(stored.error());
        return object;
    }
    const auto document = Json::parse(stored->key.document());
    const auto metadata = Json::parse(stored->entry.metadata, nullptr, false);
    object["kind"] = document["request"].value("kind", "kernel");
    for (const char* member : {"kernel", "operator", "problem", "max_m", "template", "target"}) {
        if (metadata.is_object() && metadata.contains(member)) {
            object[member] = metadata[member];
        }
    }
    return object;
}

Json to_json(const cache::PruneReport& report) {
    Json entries = Json::array();
    for (const auto& entry : report.removed) {
        entries.push_back({{"key", entry.key.hex()},
                           {"bytes", entry.bytes},
                           {"path", entry.path.string()},
                           {"last_used", to_text(entry.last_used)}});
    }
    Json faults = Json::array();
    for (const auto& fault : report.faults) {
        faults.push_back(to_json(fault));
    }
    return {{"removed",
             {{"entries", report.removed.size()},
              {"temporaries", report.temporaries},
              {"locks", report.locks},
              {"damaged", report.damaged},
              {"bytes", report.bytes}}},
            {"kept", {{"entries", report.kept_entries}, {"bytes", report.kept_bytes}}},
            {"entries", entries},
            {"faults", faults}};
}

ExitCode print_report(const cache::PruneReport& report, const CacheView& view, bool dry_run,
                      const CommonOptions& common) {
    const auto folder = view.settings.cache_dir.string();
    for (const auto& fault : report.faults) {
        print_diagnostic(fault.message);
    }
    if (common.json) {
        Json document = {{"folder", folder}, {"dry_run", dry_run}};
        document.update(to_json(report));
        print_json(document);
    } else {
        if (dry_run) {
            for (const auto& entry : report.removed) {
                print("{}  {:>8}  last used {}\n", entry.key.hex().substr(0, 12), short_bytes(entry.bytes),
                      to_text(entry.last_used));
            }
        }
        print("{} {}, {}; kept {} entries, {} ({})\n", dry_run ? "would remove" : "removed", counted(report),
              short_bytes(report.bytes), report.kept_entries, short_bytes(report.kept_bytes), folder);
    }
    return report.faults.empty() ? ExitCode::ok : ExitCode::environment;
}

}  // namespace kiln::cli
