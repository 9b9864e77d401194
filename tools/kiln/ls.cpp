// kiln ls: what the store and the layers hold.

#include <fmt/format.h>

#include "base/log.hpp"
#include "tools/kiln/cache_view.hpp"

namespace kiln::cli {
namespace {

ExitCode ls(const CommonOptions& common) {
    const auto view = open_cache_view(common);
    if (!view) {
        return report(view.error(), common);
    }
    Json entries = Json::array();
    for (const auto* place : view->all_places()) {
        const auto summaries = place->list();
        if (!summaries && place == view->places.store.get()) {
            return report(summaries.error(), common);
        }
        if (!summaries) {
            log::event(log::Level::warning, "no-layer", {{"reason", summaries.error().message}});
            continue;
        }
        for (const auto& summary : *summaries) {
            auto described = describe_entry(summary, place->read(summary));
            if (place != view->places.store.get()) {
                described["layer"] = place->folder().string();
            }
            entries.push_back(std::move(described));
        }
    }
    const auto folder = view->settings.cache_dir.string();
    if (common.json) {
        Json layers = Json::array();
        for (const auto& layer : view->places.layers) {
            layers.push_back(layer->folder().string());
        }
        print_json({{"folder", folder}, {"layers", layers}, {"entries", entries}});
        return ExitCode::ok;
    }
    TextTable table({"key", "kind", "kernel", "target", "size", "layer"});
    std::uint64_t total = 0;
    for (const auto& entry : entries) {
        total += entry["bytes"].get<std::uint64_t>();
        table.add({entry["key"].get<std::string>().substr(0, 12), entry.value("kind", "unreadable"),
                   entry.value("kernel", ""), entry.value("target", ""),
                   short_bytes(entry["bytes"].get<std::uint64_t>()), entry.value("layer", "")});
    }
    if (!entries.empty()) {
        table.print();
    }
    print("{} entries, {} in {}{}\n", entries.size(), short_bytes(total), folder,
          view->places.layers.empty() ? "" : fmt::format(" and {} layers", view->places.layers.size()));
    return ExitCode::ok;
}

}  // namespace

void add_ls(CLI::App& app, Invocation& invocation) {
    auto* command = app.add_subcommand("ls", "list what the cache holds");
    invocation.manuals.describe(
        *command,
        {.text = "Each entry with its kernel, target, size and key; then the layers of "
                 "KILN_CACHE_PATH. kiln show takes the beginning of a key.",
         .examples = {{"kiln ls", "a line for each entry"}, {"kiln ls --json", "all of it, for a program"}},
         .exits = {{0, "listed"},
                   {2, "bad usage, or a variable that is malformed"},
                   {3, "the cache can not be read"},
                   {130, "interrupted"}}});
    command->callback([&invocation] { invocation.run = [&invocation] { return ls(invocation.common); }; });
}

}  // namespace kiln::cli
