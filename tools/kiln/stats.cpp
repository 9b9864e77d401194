// kiln stats: how much the cache holds, of what, and what could be removed.

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/digest.hpp"
#include "tools/kiln/built_elsewhere.hpp"
#include "tools/kiln/cache_view.hpp"

namespace kiln::cli {
namespace {

struct Share {
    std::uint64_t entries = 0;
    std::uint64_t bytes = 0;
};

// Entries of one folder, counted by what they are for.
struct Holdings {
    std::string folder;
    Share all;
    std::uint64_t unreadable = 0;  // damaged, or refused
    // Of a bundle: those that another compiler than this machine's built, and are served all the same.
    std::optional<std::uint64_t> built_elsewhere;
    std::map<std::string, std::map<std::string, Share>> by;
    std::optional<std::chrono::system_clock::time_point> oldest, newest;  // last use
};

// What a person calls the compiler of a key: the largest part of it, and a digest of all.
std::string compiler_of(const Json& key_document) {
    const auto& build = key_document["build"];
    const auto digest = sha256(build.dump()).hex().substr(0, 12);
    const auto components = build.find("components");
    if (components == build.end() || !components->is_array() || components->empty() ||
        !components->front().is_object()) {
        return digest;
    }
    return fmt::format("{} {}", components->front().value("name", "?"), digest);
}

Result<Holdings> count_holdings(const cache::Layer& layer) {
    auto summaries = layer.list();
    if (!summaries) {
        return fail(summaries);
    }
    Holdings holdings;
    holdings.folder = layer.folder().string();
    for (const auto& summary : *summaries) {
        const auto add = [&summary](Share& share) {
            ++share.entries;
            share.bytes += summary.bytes;
        };
        add(holdings.all);
        holdings.oldest = std::min(holdings.oldest.value_or(summary.last_used), summary.last_used);
        holdings.newest = std::max(holdings.newest.value_or(summary.last_used), summary.last_used);
        const auto stored = layer.read(summary);
        if (!stored) {
            ++holdings.unreadable;
            continue;
        }
        const auto described = describe_entry(summary, stored);
        add(holdings.by["kind"][described.value("kind", "")]);
        add(holdings.by["compiler"][compiler_of(Json::parse(stored->key.document()))]);
        for (const char* member : {"operator", "template", "target"}) {
            if (described.contains(member)) {
                add(holdings.by[member][described[member].get<std::string>()]);
            }
        }
    }
    return holdings;
}

Json describe_holdings(const Holdings& holdings) {
    Json by = Json::object();
    for (const char* what : {"kind", "operator", "template", "target", "compiler"}) {
        Json shares = Json::object();
        if (const auto found = holdings.by.find(what); found != holdings.by.end()) {
            for (const auto& [name, share] : found->second) {
                shares[name] = {{"entries", share.entries}, {"bytes", share.bytes}};
            }
        }
        by[what] = shares;
    }
    Json object = {{"folder", holdings.folder},
                   {"entries", holdings.all.entries},
                   {"bytes", holdings.all.bytes},
                   {"unreadable", holdings.unreadable},
                   {"by", by}};
    if (holdings.built_elsewhere) {
        object["built_elsewhere"] = *holdings.built_elsewhere;
    }
    if (holdings.oldest) {
        object["last_used"] = {{"oldest", to_text(*holdings.oldest)}, {"newest", to_text(*holdings.newest)}};
    }
    return object;
}

void print_holdings(const Holdings& holdings, std::string_view what) {
    print("{} {}: {} entries, {}", what, holdings.folder, holdings.all.entries,
          short_bytes(holdings.all.bytes));
    if (holdings.unreadable > 0) {
        print(", {} of them unreadable", holdings.unreadable);
    }
    if (holdings.built_elsewhere.value_or(0) > 0) {
        print("; another compiler than this machine's built {}, which are served by their request alone",
              *holdings.built_elsewhere);
    }
    if (holdings.oldest) {
        print("; last used between {} and {}", to_text(*holdings.oldest), to_text(*holdings.newest));
    }
    print("\n");
    TextTable table({"by", "", "entries", "size"});
    bool empty = true;
    for (const auto& [by, shares] : holdings.by) {
        for (const auto& [name, share] : shares) {
            table.add({by, name, fmt::format("{}", share.entries), short_bytes(share.bytes)});
            empty = false;
        }
    }
    if (!empty) {
        table.print();
    }
}

ExitCode stats(const CommonOptions& common) {
    const auto view = open_cache_view(common);
    if (!view) {
        return report(view.error(), common);
    }
    Holdings own;
    own.folder = view->settings.cache_dir.string();
    cache::PruneReport leftovers;
    if (auto* store = view->places.store.get()) {
        auto counted = count_holdings(*store);
        if (!counted) {
            return report(counted.error(), common);
        }
        own = *std::move(counted);
        auto swept = store->prune({.dry_run = true});
        if (!swept) {
            return report(swept.error(), common);
        }
        leftovers = *std::move(swept);
    }
    std::vector<Holdings> layers;
    for (const auto& layer : view->places.layers) {
        auto counted = count_holdings(*layer);
        if (!counted) {
            return report(counted.error(), common);
        }
        if (layer->is_bundle()) {
            counted->built_elsewhere = count_built_elsewhere(*layer, view->settings);
        }
        layers.push_back(*std::move(counted));
    }

    const auto limit = view->settings.cache_limit;
    if (common.json) {
        Json document = describe_holdings(own);
        document["exists"] = view->places.store != nullptr;
        document["limit"] = limit == 0 ? Json() : Json(limit);
        document["leftovers"] = {{"temporaries", leftovers.temporaries},
                                 {"locks", leftovers.locks},
                                 {"damaged", leftovers.damaged},
                                 {"bytes", leftovers.bytes}};
        document["layers"] = Json::array();
        for (const auto& layer : layers) {
            document["layers"].push_back(describe_holdings(layer));
        }
        document["refused_layers"] = Json::array();
        for (const auto& fault : view->places.layer_faults) {
            document["refused_layers"].push_back(to_json(fault));
        }
        print_json(document);
        return ExitCode::ok;
    }
    print_holdings(own, "store");
    print("bound: {}; kiln prune would remove {} temporary files, {} lock files, {} damaged files\n",
          limit == 0 ? "none" : short_bytes(limit), leftovers.temporaries, leftovers.locks,
          leftovers.damaged);
    for (const auto& layer : layers) {
        print("\n");
        print_holdings(layer, layer.built_elsewhere ? "bundle" : "layer");
    }
    return ExitCode::ok;
}

}  // namespace

void add_stats(CLI::App& app, Invocation& invocation) {
    auto* command = app.add_subcommand("stats", "count what the cache holds, and what could be removed");
    invocation.manuals.describe(
        *command, {.text = "Entries and bytes by operator, target and compiler, when they were used last, "
                           "what could be removed, and which layers another compiler built. Counts entries "
                           "on disk; what a running program hit and missed, kiln_service_metrics says there.",
                   .examples = {{"kiln stats", "for a person"}, {"kiln stats --json", "for a program"}},
                   .exits = {{0, "counted"},
                             {2, "bad usage, or a variable that is malformed"},
                             {3, "the cache can not be read"},
                             {130, "interrupted"}}});
    command->callback([&invocation] { invocation.run = [&invocation] { return stats(invocation.common); }; });
}

}  // namespace kiln::cli
