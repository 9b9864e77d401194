// kiln bundle create: compiles what the tables name, and writes it down as one file.

#include "tools/kiln/bundle_create.hpp"

#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/compile/listing_request.hpp"
#include "runtime/embedded/embedded.hpp"
#include "runtime/tables/layers.hpp"
#include "tools/kiln/bundle.hpp"
#include "tools/kiln/bundle_files.hpp"
#include "tools/kiln/warm_failures.hpp"
#include "tools/kiln/warm_selection.hpp"
#include "tools/kiln/words.hpp"

namespace kiln::cli {
namespace {

struct CreateOptions {
    std::vector<std::string> words;
    std::string target;
    std::string jobs;
    std::string shard;
    BundleOutput output;
    bool no_listing = false;
};

// How long a compile took is of no use on another machine, and never twice the same.
std::string lasting_metadata(const std::string& metadata) {
    auto object = Json::parse(metadata);
    object.erase("compile_seconds");
    return object.dump();
}

Result<cache::BundleWriter> fill(service::Service& service, const service::WarmSummary& warmed,
                                 const CreateOptions& options, BundleDescription& description) {
    cache::BundleWriter writer;
    for (const auto& item : warmed.items) {
        const auto artifact = service.builder().obtain(item.specialisation);
        if (!artifact) {
            return tl::unexpected(artifact.error());
        }
        if (auto added =
                add_kernel(writer, **artifact, options.no_listing ? Listings::leave_out : Listings::keep);
            !added) {
            return fail(added);
        }
        description.targets.insert(item.specialisation.target.text());
    }
    auto tables = add_tables(writer, service.settings());
    if (!tables) {
        return fail(tables);
    }
    description.listings = !options.no_listing;
    description.tables = *std::move(tables);
    if (const auto shard = parse_shard(options.shard); shard && *shard && (*shard)->count > 1) {
        description.shards.insert(fmt::format("{}/{}", (*shard)->index, (*shard)->count));
    }
    return writer;
}

ExitCode write_down(service::Service& service, const service::WarmSummary& warmed,
                    const CreateOptions& options, const std::optional<SigningKey>& key,
                    const CommonOptions& common) {
    BundleDescription description;
    const auto writer = fill(service, warmed, options, description);
    auto said = writer ? write_bundle(*writer, to_text(description), key, options.output.path)
                       : Result<Json>(tl::unexpected(writer.error()));
    if (!said) {
        return report(said.error(), common);
    }
    if (common.json) {
        (*said)["kernels"] = warmed.items.size();
        (*said)["compiled"] = warmed.compiled;
        (*said)["hits"] = warmed.hits;
        print_json(*said);
    } else {
        print("{}: {} kernels, {} tables, {}{} (compiled {}, found {} in the cache)\n", options.output.path,
              warmed.items.size(), (*said)["tables"].get<std::uint64_t>(),
              short_bytes((*said)["bytes"].get<std::uint64_t>()), key ? ", signed" : "", warmed.compiled,
              warmed.hits);
    }
    return ExitCode::ok;
}

ExitCode create(const CreateOptions& options, Invocation& invocation) {
    const auto& common = invocation.common;
    const auto words = split_words(options.words);
    if (!words) {
        return report(words.error(), common);
    }
    const auto jobs = parse_jobs(options.jobs);
    if (!jobs) {
        return report(jobs.error(), common);
    }
    const auto shard = parse_shard(options.shard);
    if (!shard) {
        return report(shard.error(), common);
    }
    const auto key = ready_output(options.output);
    if (!key) {
        return report(key.error(), common);
    }
    auto overrides = overrides_for(*words);
    overrides.workers = *jobs;
    auto opened = open_service(common, overrides);
    if (!opened) {
        return report(opened.error(), common);
    }
    const std::shared_ptr<service::Service> service = std::move(*opened);
    invocation.metrics.follow(service);
    const auto target = asked_target(options.target, service->settings());
    const auto filters = make_filters(*words, target);
    if (!filters) {
        return report(filters.error(), common);
    }
    const auto selected = select_to_warm(*service, *filters, *words, target, *shard);
    if (!selected) {
        return report(selected.error(), common);
    }
    print_remarks(*selected, common);
    invocation.grace = std::make_unique<Grace>([] {});
    service::WarmSummary warmed;
    {
        ProgressBar progress(common.json);
        const auto step = [&](std::size_t done, std::size_t total, const service::WarmItem& item) {
            progress.step(done, total, to_text(item.specialisation));
        };
        warmed = service->warm(selected->wanted,
                               {.jobs = *jobs, .stop = &invocation.grace->stop(), .progress = step});
    }
    invocation.metrics.count(warmed);
    const auto failed = print_failures(warmed);
    if (invocation.grace->requested() || failed != ExitCode::ok) {
        print_diagnostic(fmt::format("{}: not written", options.output.path));
        if (common.json) {
            print_json({{"bundle", Json()}, {"failed", warmed.failed}, {"skipped", warmed.skipped}});
        }
        return invocation.grace->requested() ? ExitCode::interrupted : failed;
    }
    return write_down(*service, warmed, options, *key, common);
}

}  // namespace

Result<void> add_kernel(cache::BundleWriter& writer, const service::Artifact& artifact, Listings listings) {
    const auto add = [&writer](const cache::Key& key, const cache::Entry& entry) {
        auto file = cache::serialise(key, entry);
        return file ? writer.add(*std::move(file)) : Result<void>(fail(file));
    };
    const auto key = cache::Key::from_document(artifact.key_document);
    if (!key) {
        return tl::unexpected(key.error());
    }
    const auto listing = listings == Listings::keep ? artifact.listing.get() : std::string();
    if (auto added = add(*key, {artifact.code_object, lasting_metadata(artifact.metadata.get()), listing});
        !added || listing.empty()) {
        return added;
    }
    const auto build = Json::parse(key->document())["build"].dump();
    const auto of_listing = cache::Key::make(compile::listing_request(artifact.code_object), build);
    return of_listing ? add(*of_listing, {{}, compile::kListingMetadata, listing})
                      : Result<void>(tl::unexpected(of_listing.error()));
}

Result<std::vector<std::string>> add_tables(cache::BundleWriter& writer, const service::Settings& settings) {
    BundleDocuments documents;
    const auto layers = tables::read_layers(settings.table_places);
    for (const auto& layer : layers.layers) {
        for (const auto& text : layer.texts) {
            documents.add(std::filesystem::path(text.name).filename().string(), text.text);
        }
    }
    for (const auto& file : embedded::shape_files()) {
        if (settings.shipped_tables && file.path.find('/') == std::string_view::npos) {  // not the schema
            documents.add(std::string(file.path), file.text);
        }
    }
    const auto added = documents.add_to(writer);
    return added ? Result<std::vector<std::string>>(documents.names()) : tl::unexpected(added.error());
}

void add_bundle_create(CLI::App& bundle, Invocation& invocation) {
    auto* command = bundle.add_subcommand("create", "compile what the tables name into one file");
    auto options = std::make_shared<CreateOptions>();
    command->add_option("what", options->words,
                        "[TABLE...] [OPERATOR key=value...]...; all rows when left out");
    command->add_option("--target", options->target, "only rows that serve this target (KILN_TARGET)");
    add_output_options(*command, options->output);
    command->add_option("--jobs", options->jobs, "compiles at once; one for each core when left out");
    command->add_option("--shard", options->shard, kShardHelp);
    add_metrics_file(*command, invocation, {"compiled", "hits", "failed", "skipped"});
    command->add_flag("--no-listing", options->no_listing,
                      "leave out the disassemblies: smaller, but without a compiler the simulator can not "
                      "run it");
    invocation.manuals.describe(
        *command, {.text = "Needs a compiler and no GPU. What the cache holds already is taken from there. "
                           "The same tables, templates, compiler and kiln give the same bytes. The bundle "
                           "carries the tables. A problem is OPERATOR key=value ..., where operators are "
                           "linear, router, moe_sort and fused_moe: linear n=4608 k=4096.\n\nNothing is "
                           "written unless all was well.",
                   .examples = {{"kiln bundle create --target gfx950 model.json -o qwen.kiln",
                                 "what a table names, for one target"},
                                {"kiln bundle create --target gfx950 --sign KEY.pem -o qwen.kiln",
                                 "all tables, signed with a key of openssl genpkey -algorithm ed25519"}},
                   .exits = {{0, "written"},
                             {1, "a compile failed"},
                             {2, "bad usage or bad input"},
                             {3, "no compiler, or a file that can not be written"},
                             {130, "interrupted"}}});
    command->callback([&invocation, options] {
        invocation.run = [&invocation, options] { return create(*options, invocation); };
    });
}

}  // namespace kiln::cli
