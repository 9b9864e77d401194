// kiln show: the specialisations of one bucket, in full: source, disassembly, key or metadata. Compiles them
// where the cache has them not.

#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/digest.hpp"
#include "runtime/compile/cuda_disassembly.hpp"
#include "tools/kiln/cache_view.hpp"
#include "tools/kiln/command.hpp"
#include "tools/kiln/output.hpp"
#include "tools/kiln/words.hpp"

namespace kiln::cli {
namespace {

struct ShowOptions {
    std::vector<std::string> words;
    std::string m;
    std::string target;
    std::string stage;
    std::string cu_num;
    bool source = false, isa = false, key = false, meta = false;
};

// What there is to show of one specialisation, wherever it came from.
struct Exhibit {
    std::string template_id;             // empty for a bare cache entry
    std::string kernel_name;             // the same
    std::vector<compile::Header> files;  // constants.h, headers, the template; none for a bare cache entry
    std::string key_digest;
    std::string key_document;
    std::string metadata;
    Bytes code_object;
    std::string listing;  // empty of a cubin
    std::string origin;   // "compiled", "cache"
};

// The row's bucket for --m; without --m the only one.
Result<const tables::Bucket*> choose_bucket(const tables::Row& row, const ShowOptions& options) {
    if (!options.m.empty()) {
        const auto m = parse_number("--m", options.m, 1);
        if (!m) {
            return tl::unexpected(m.error());
        }
        if (const auto* bucket = row.bucket_for(*m)) {
            return bucket;
        }
    } else if (row.buckets.size() == 1) {
        return &row.buckets.front();
    }
    std::vector<std::int64_t> edges;
    for (const auto& bucket : row.buckets) {
        edges.push_back(bucket.max_m);
    }
    return fail(
        ErrorCode::bad_input, Stage::configure,
        fmt::format("expected --m between 1 and {}, which chooses a bucket (they end at {}), found {}",
                    edges.back(), fmt::join(edges, ", "), options.m.empty() ? "none" : options.m));
}

// Of a specialisation, compiled where the cache has it not.
Result<Exhibit> build_exhibit(service::Service& service, const operators::Specialisation& specialisation,
                              const ShowOptions& options) {
    Exhibit exhibit;
    exhibit.template_id = specialisation.source_template->id();
    exhibit.kernel_name = specialisation.kernel_name;
    exhibit.files = specialisation.request.headers;
    exhibit.files.push_back({specialisation.request.name, specialisation.request.source});
    if (options.source) {
        return exhibit;  // needs no compiler
    }
    const auto artifact = service.obtain(specialisation);
    if (!artifact) {
        return tl::unexpected(artifact.error());
    }
    exhibit.key_digest = (*artifact)->key_digest;
    exhibit.key_document = (*artifact)->key_document;
    exhibit.metadata = (*artifact)->metadata.get();
    exhibit.code_object = (*artifact)->code_object;
    exhibit.listing = (*artifact)->listing.get();
    exhibit.origin = service::to_text((*artifact)->source);
    return exhibit;
}

// Those of the stages that are asked for.
operators::Answer<std::vector<Exhibit>> build_exhibits(service::Service& service,
                                                       const ShowOptions& options) {
    const auto words = only_problem(options.words);
    if (!words) {
        return operators::failed(words.error());
    }
    const auto problem = operators::parse_problem(*words->op, words->fields);
    if (!problem) {
        return operators::failed(problem.error());
    }
    const auto cu_num = parse_cu_num(options.cu_num);
    if (!cu_num) {
        return operators::failed(cu_num.error());
    }
    const auto row = service.select(*words->op, *problem, {service.settings().target, *cu_num});
    if (!row) {
        return tl::unexpected(row.error());
    }
    const auto bucket = choose_bucket(**row, options);
    if (!bucket) {
        return operators::failed(bucket.error());
    }
    const auto pipeline = service.pipeline(**row, **bucket);
    if (!pipeline) {
        return operators::failed(pipeline.error());
    }
    std::vector<Exhibit> exhibits;
    std::vector<std::string_view> ids;
    for (const auto& [specialisation, offset] : pipeline->stages) {
        const auto id = specialisation.source_template->id();
        ids.push_back(id);
        if (!options.stage.empty() && id != options.stage) {
            continue;
        }
        auto exhibit = build_exhibit(service, specialisation, options);
        if (!exhibit) {
            return operators::failed(exhibit.error());
        }
        exhibits.push_back(std::move(*exhibit));
    }
    if (exhibits.empty()) {
        return operators::failed(
            {ErrorCode::bad_input, Stage::configure,
             fmt::format("--stage: expected one of {}, found {}", fmt::join(ids, ", "), options.stage)});
    }
    return exhibits;
}

bool is_key_prefix(const std::vector<std::string>& words) {
    return words.size() == 1 && words[0].size() >= 4 && words[0].size() <= 64 &&
           words[0].find_first_not_of("0123456789abcdef") == std::string::npos;
}

// An entry of the store or a layer by the beginning of its key, as `kiln ls` prints it.
Result<Exhibit> find_exhibit(const CommonOptions& common, const std::string& prefix) {
    const auto view = open_cache_view(common);
    if (!view) {
        return tl::unexpected(view.error());
    }
    std::map<Digest, Result<cache::StoredEntry>> found;  // the store's before a layer's of the same key
    for (const auto* place : view->all_places()) {
        const auto summaries = place->list();
        if (!summaries) {
            return tl::unexpected(summaries.error());
        }
        for (const auto& summary : *summaries) {
            if (summary.key.hex().starts_with(prefix) && !found.contains(summary.key)) {
                found.emplace(summary.key, place->read(summary));
            }
        }
    }
    if (found.size() != 1) {
        return fail(ErrorCode::not_found, Stage::cache,
                    fmt::format("expected one entry whose key begins with {}, found {} in {}", prefix,
                                found.size(), view->settings.cache_dir.string()));
    }
    auto& stored = found.begin()->second;
    if (!stored) {
        return fail(stored);
    }
    Exhibit exhibit;
    exhibit.key_digest = stored->key.digest().hex();
    exhibit.key_document = stored->key.document();
    exhibit.metadata = std::move(stored->entry.metadata);
    exhibit.code_object = std::move(stored->entry.code_object);
    exhibit.listing = std::move(stored->entry.listing);
    exhibit.origin = "cache";
    return exhibit;
}

void print_exhibit(const Exhibit& exhibit, const ShowOptions& options) {
    if (options.source) {
        for (const auto& file : exhibit.files) {
            print("// ---- {}\n{}{}", file.name, file.text, file.text.ends_with('\n') ? "" : "\n");
        }
    } else if (options.isa) {
        print("{}", exhibit.listing);
    } else if (options.key) {
        print("{}\n{}\n", exhibit.key_digest, Json::parse(exhibit.key_document).dump(2));
    } else {
        print("{}\n", Json::parse(exhibit.metadata).dump(2));
    }
}

// No part was asked for: a document has them all.
bool shows_all(const ShowOptions& options) {
    return !options.source && !options.isa && !options.key && !options.meta;
}

Json to_json(const Exhibit& exhibit, const ShowOptions& options) {
    Json document = Json::object();
    const bool all = shows_all(options);
    if ((all || options.source) && !exhibit.files.empty()) {
        Json files = Json::array();
        for (const auto& file : exhibit.files) {
            files.push_back({{"name", file.name}, {"text", file.text}});
        }
        document["source"] = files;
    }
    if (options.isa || (all && !exhibit.listing.empty())) {
        document["isa"] = exhibit.listing;
    }
    if (all || options.key) {
        document["key"] = {{"digest", exhibit.key_digest}, {"document", Json::parse(exhibit.key_document)}};
    }
    if (all || options.meta) {
        document["meta"] = Json::parse(exhibit.metadata);
    }
    if (!exhibit.origin.empty()) {
        document["origin"] = exhibit.origin;
    }
    return document;
}

// Of the stages of a bucket.
operators::Answer<std::vector<Exhibit>> build_exhibits(const ShowOptions& options,
                                                       const CommonOptions& common) {
    service::Overrides overrides;
    if (!options.target.empty()) {
        overrides.target = options.target;
    }
    auto opened = open_service(common, overrides);
    return opened ? build_exhibits(**opened, options) : operators::failed(opened.error());
}

// NVRTC delivers no listing: a toolkit's disassembler is asked when somebody wants to see it.
Result<void> complete_listing(Exhibit& exhibit, const ShowOptions& options, const CommonOptions& common) {
    if (exhibit.listing.empty() && (options.isa || (common.json && shows_all(options)))) {
        auto listing = compile::disassemble_cubin(exhibit.code_object);
        if (!listing && options.isa) {
            return tl::unexpected(listing.error());
        }
        exhibit.listing = std::move(listing).value_or("");
    }
    return {};
}

// One as it is; of several each with the template and the kernel that it is of.
void print_exhibits(const std::vector<Exhibit>& exhibits, const ShowOptions& options, bool json) {
    if (exhibits.size() == 1) {
        json ? print_json(to_json(exhibits.front(), options)) : print_exhibit(exhibits.front(), options);
        return;
    }
    Json stages = Json::array();
    for (const auto& exhibit : exhibits) {
        if (json) {
            auto& stage = stages.emplace_back(to_json(exhibit, options));
            stage["template"] = exhibit.template_id;
            stage["kernel"] = exhibit.kernel_name;
        } else {
            print("// ==== {}, {}\n", exhibit.template_id, exhibit.kernel_name);
            print_exhibit(exhibit, options);
        }
    }
    if (json) {
        print_json({{"stages", stages}});
    }
}

ExitCode show(const ShowOptions& options, const CommonOptions& common) {
    std::vector<Exhibit> exhibits;
    if (is_key_prefix(options.words)) {
        if (options.source || !options.stage.empty()) {
            return report(Error{ErrorCode::bad_input, Stage::configure,
                                fmt::format("{} needs a problem: a cache entry is one specialisation, and "
                                            "holds digests of its sources only",
                                            options.source ? "--source" : "--stage")},
                          common);
        }
        auto found = find_exhibit(common, options.words.front());
        if (!found) {
            return report(found.error(), common);
        }
        exhibits.push_back(std::move(*found));
    } else {
        auto built = build_exhibits(options, common);
        if (!built) {
            return report(built.error(), common);
        }
        exhibits = std::move(*built);
    }
    for (auto& exhibit : exhibits) {
        if (const auto completed = complete_listing(exhibit, options, common); !completed) {
            return report(completed.error(), common);
        }
    }
    print_exhibits(exhibits, options, common.json);
    return ExitCode::ok;
}

}  // namespace

void add_show(CLI::App& app, Invocation& invocation) {
    auto* command =
        app.add_subcommand("show", "print the kernels of a bucket: metadata, source, disassembly or key");
    auto options = std::make_shared<ShowOptions>();
    command->add_option("what", options->words, "OPERATOR key=value..., or the beginning of a key (kiln ls)")
        ->required();
    command->add_option("--m", options->m, "chooses the bucket; not needed where there is one");
    command->add_option("--target", options->target, "gfx950, gfx950:xnack-, sm_90a (KILN_TARGET)");
    command->add_option("--stage", options->stage,
                        "of a bucket that runs several templates, this one alone: moe_sort/general, say");
    command->add_option("--cu-num", options->cu_num, kCuNumHelp);
    auto* parts = command->add_option_group("part");
    parts->add_flag("--source", options->source,
                    "the template, what it includes, and the generated constants.h");
    parts->add_flag("--isa", options->isa,
                    "the disassembly; of a cubin by nvdisasm or cuobjdump, which a CUDA toolkit brings");
    parts->add_flag("--key", options->key, "the key document and its digest");
    parts->add_flag("--meta", options->meta, "registers, LDS, spills, arguments (the default)");
    parts->require_option(0, 1);
    invocation.manuals.describe(
        *command,
        {.text = "A problem is OPERATOR key=value ..., where operators are linear, router, "
                 "moe_sort and fused_moe: linear n=4608 k=4096. What is not in the cache is "
                 "compiled first. A bucket of several stages is printed stage by stage, each "
                 "under its template's name.",
         .examples = {{"kiln show linear n=4608 k=4096 --m 8", "registers, LDS, spills and arguments"},
                      {"kiln show linear n=4608 k=4096 --m 8 --isa", "the disassembly"},
                      {"kiln show --source router hidden=4096 experts=512 top_k=10 --m 1",
                       "the source with its constants"}},
         .exits = {{0, "printed"},
                   {1, "declined, or it does not compile"},
                   {2, "bad usage or bad input, or no such entry"},
                   {3, "no compiler and not in the cache"},
                   {130, "interrupted"}}});
    command->callback([&invocation, options] {
        invocation.run = [&invocation, options] { return show(*options, invocation.common); };
    });
}

}  // namespace kiln::cli
