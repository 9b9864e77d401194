// kiln ls: what the store holds.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cache/store.hpp"
#include "tools/kiln/command.hpp"
#include "tools/kiln/output.hpp"

namespace kiln::cli {
namespace {

// What a listed entry says of itself. Entries that are no kernels (disassemblies for the simulator) have no
// name.
Json describe(const cache::EntrySummary& summary, const Result<cache::StoredEntry>& stored) {
    Json object = {{"key", summary.key.hex()}, {"bytes", summary.bytes}, {"path", summary.path.string()}};
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

ExitCode ls(const CommonOptions& common) {
    auto opened = open_service(common);
    if (!opened) {
        return report(opened.error(), common);
    }
    const auto* store = (*opened)->builder().store();
    if (store == nullptr) {
        return report(Error{ErrorCode::environment, Stage::cache,
                            "no cache folder can be used here; kiln doctor says why"},
                      common);
    }
    const auto summaries = store->list();
    if (!summaries) {
        return report(summaries.error(), common);
    }
    Json entries = Json::array();
    for (const auto& summary : *summaries) {
        entries.push_back(describe(summary, store->read(summary)));
    }
    if (common.json) {
        print_json({{"folder", store->folder().string()}, {"entries", entries}});
        return ExitCode::ok;
    }
    TextTable table({"key", "kind", "kernel", "target", "size"});
    std::uint64_t total = 0;
    for (const auto& entry : entries) {
        total += entry["bytes"].get<std::uint64_t>();
        table.add({entry["key"].get<std::string>().substr(0, 12), entry.value("kind", "damaged"),
                   entry.value("kernel", ""), entry.value("target", ""),
                   short_bytes(entry["bytes"].get<std::uint64_t>())});
    }
    if (!entries.empty()) {
        table.print();
    }
    print("{} entries, {} in {}\n", entries.size(), short_bytes(total), store->folder().string());
    return ExitCode::ok;
}

}  // namespace

void add_ls(CLI::App& app, Invocation& invocation) {
    auto* command = app.add_subcommand("ls", "list what the cache holds");
    command->callback([&invocation] { invocation.run = [&invocation] { return ls(invocation.common); }; });
}

}  // namespace kiln::cli
