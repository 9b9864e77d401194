// kiln bundle merge: what several bundles hold, as one file.

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tools/kiln/bundle.hpp"
#include "tools/kiln/bundle_files.hpp"
#include "tools/kiln/warm_selection.hpp"

namespace kiln::cli {
namespace {

struct MergeOptions {
    std::vector<std::string> bundles;
    BundleOutput output;
    bool partial = false;
};

// What was taken so far. The order in which bundles are added does not matter.
struct Merged {
    cache::BundleWriter writer;
    std::map<std::string, std::set<std::string>> tables;  // texts by name
    BundleDescription description;
    std::set<std::vector<std::string>> orders;  // of the tables
};

// All of one bundle, which verify() found sound.
Result<void> merge_in(const cache::BundleView& view, Merged& merged) {
    const auto records = view.records();
    const auto documents = view.documents();
    const auto description = view.description();
    if (!records || !documents || !description) {
        return tl::unexpected(!records     ? records.error()
                              : !documents ? documents.error()
                                           : description.error());
    }
    for (const auto& record : *records) {
        const auto entry = view.entry(record);
        if (!entry) {
            return tl::unexpected(entry.error());
        }
        const auto bytes = entry->bytes();
        if (auto added = merged.writer.add(Bytes(bytes.begin(), bytes.end())); !added) {
            return added;
        }
    }
    for (const auto& document : *documents) {
        merged.tables[std::string(document.name)].emplace(document.text);
    }
    auto said = read_description(*description);
    merged.description.targets.merge(said.targets);
    merged.description.listings = merged.description.listings && said.listings;
    merged.description.shards.merge(said.shards);
    merged.orders.insert(std::move(said.tables));
    return {};
}

// Takes out the shards that make a whole together, and returns those that the others lack.
std::vector<std::string> take_out_wholes(std::set<std::string>& shards) {
    std::map<std::uint32_t, std::set<std::uint32_t>> present;  // by how many there are
    for (const auto& text : shards) {
        if (const auto shard = parse_shard(text); shard && *shard) {
            present[(*shard)->count].insert((*shard)->index);
        }
    }
    shards.clear();
    std::vector<std::string> missing;
    for (const auto& [count, indices] : present) {
        for (std::uint32_t index = 0; indices.size() < count && index < count; ++index) {
            const auto text = fmt::format("{}/{}", index, count);
            if (indices.contains(index)) {
                shards.insert(text);
            } else {
                missing.push_back(text);
            }
        }
    }
    return missing;
}

Error shards_missing(const std::vector<std::string>& missing) {
    constexpr std::size_t kNamed = 8;
    const auto named = std::span(missing).first(std::min(missing.size(), kNamed));
    return {ErrorCode::bad_input, Stage::configure,
            fmt::format("expected all shards of a whole, found none of {}{}; --partial merges without them",
                        fmt::join(named, ", "),
                        missing.size() > kNamed ? fmt::format(" and {} more", missing.size() - kNamed) : "")};
}

ExitCode merge(const MergeOptions& options, const CommonOptions& common) {
    const auto key = ready_output(options.output);
    if (!key) {
        return report(key.error(), common);
    }
    Merged merged;
    for (const auto& path : options.bundles) {
        const auto file = open_trusted_bundle(path, common);
        if (!file) {
            return report_not_sound(file.error(), common);
        }
        const auto faults = (*file)->view().verify();
        auto taken =
            faults.empty() ? merge_in((*file)->view(), merged) : Result<void>(tl::unexpected(faults.front()));
        if (!taken) {
            taken.error().message = fmt::format("{}: not merged: {}", path, taken.error().message);
            return report(taken.error(), common);
        }
    }
    const auto missing = take_out_wholes(merged.description.shards);
    if (!missing.empty() && !options.partial) {
        return report(shards_missing(missing), common);
    }
    BundleDocuments documents;
    for (const auto& [name, texts] : merged.tables) {
        for (const auto& text : texts) {
            documents.add(name, text);
        }
    }
    if (merged.orders.size() == 1) {
        merged.description.tables = *merged.orders.begin();
    }
    const auto added = documents.add_to(merged.writer);
    auto said = added ? write_bundle(merged.writer, to_text(merged.description), *key, options.output.path)
                      : Result<Json>(tl::unexpected(added.error()));
    if (!said) {
        return report(said.error(), common);
    }
    if (common.json) {
        (*said)["merged"] = options.bundles.size();
        (*said)["missing"] = missing;
        print_json(*said);
    } else {
        print("{}: {} entries, {} tables, {}{}, from {} bundles\n", options.output.path,
              (*said)["entries"].get<std::uint64_t>(), (*said)["tables"].get<std::uint64_t>(),
              short_bytes((*said)["bytes"].get<std::uint64_t>()), *key ? ", signed" : "",
              options.bundles.size());
    }
    return ExitCode::ok;
}

}  // namespace

void add_bundle_merge(CLI::App& bundle, Invocation& invocation) {
    auto* command = bundle.add_subcommand("merge", "join bundles into one");
    auto options = std::make_shared<MergeOptions>();
    command->add_option("bundles", options->bundles, "the files; in any order")->required();
    add_output_options(*command, options->output);
    command->add_flag("--partial", options->partial,
                      "though shards are missing; they can be merged in later");
    invocation.manuals.describe(
        *command, {.text = "What the shards of a table made becomes the very file that one machine would "
                           "have made of the whole; where one of them is missing, nothing is written. Each "
                           "bundle is verified first, and with "
                           "KILN_TRUSTED_KEYS set one of those keys must have signed it; the merged one "
                           "bears the signature of --sign alone.\n\nWhat several hold must be the same bytes "
                           "in each. Tables that differ under one name are all kept, the others as 2-NAME, "
                           "3-NAME and so on.\n\nNothing is written unless all was well.",
                   .examples = {{"kiln bundle merge shard-0.kiln shard-1.kiln -o whole.kiln",
                                 "what two machines compiled, as one bundle"}},
                   .exits = {{0, "written"},
                             {1, "a bundle is damaged or not trusted"},
                             {2,
                              "bad usage, no such file, a shard that is missing, or two entries of one "
                              "key that differ"},
                             {3, "a file can not be read or written"},
                             {130, "interrupted"}}});
    command->callback([&invocation, options] {
        invocation.run = [&invocation, options] { return merge(*options, invocation.common); };
    });
}

}  // namespace kiln::cli
