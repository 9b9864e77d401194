// kiln bundle inspect, verify and install.

#include "tools/kiln/bundle.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/logfmt.hpp"
#include "cache/store.hpp"
#include "tools/kiln/bundle_files.hpp"
#include "tools/kiln/cache_view.hpp"
#include "tools/kiln/new_file.hpp"

namespace kiln::cli {
namespace {

// Text of a bundle that anybody may have made, as a terminal may show it.
std::string without_controls(std::string_view text) {
    std::string line;
    log::append_sentence(line, text);
    return line;
}

ExitCode inspect(const std::string& path, const std::string& tables_folder, const CommonOptions& common) {
    const auto file = cache::BundleFile::open(path, cache::TrustedKeys());
    if (!file) {
        return report(file.error(), common);
    }
    const auto& view = (*file)->view();
    const auto description = view.description();
    const auto documents = view.documents();
    const auto layer = cache::open_bundle_layer(path, cache::TrustedKeys());
    const auto summaries = layer ? (*layer)->list() : tl::unexpected<Error>(layer.error());
    for (const auto* error :
         {description ? nullptr : &description.error(), documents ? nullptr : &documents.error(),
          summaries ? nullptr : &summaries.error()}) {
        if (error != nullptr) {
            return report(*error, common);
        }
    }
    Json entries = Json::array();
    for (const auto& summary : *summaries) {
        auto entry = describe_entry(summary, (*layer)->read(summary));
        entry.erase("path");
        entry.erase("last_used");
        entries.push_back(std::move(entry));
    }
    Json tables = Json::array();
    for (const auto& document : *documents) {
        tables.push_back({{"name", document.name}, {"bytes", document.text.size()}});
        if (tables_folder.empty()) {
            continue;
        }
        const auto to = (std::filesystem::path(tables_folder) / document.name).string();
        if (const auto written = write_new_file(to, document.text); !written) {
            return report(written.error(), common);
        }
    }
    if (common.json) {
        print_json({{"bundle", (*file)->path().string()},
                    {"version", cache::kBundleVersion},
                    {"bytes", view.bytes()},
                    {"contents", view.contents().hex()},
                    {"signer", signer_of(view)},
                    {"description", Json::parse(*description)},
                    {"tables", tables},
                    {"entries", entries}});
        return ExitCode::ok;
    }
    TextTable table({"key", "kind", "kernel", "target", "size"});
    for (const auto& entry : entries) {
        table.add({entry["key"].get<std::string>().substr(0, 12),
                   without_controls(entry.value("kind", "unreadable")),
                   without_controls(entry.value("kernel", "")), without_controls(entry.value("target", "")),
                   short_bytes(entry["bytes"].get<std::uint64_t>())});
    }
    if (!entries.empty()) {
        table.print();
    }
    for (const auto& one : tables) {
        print("table {}, {}\n", without_controls(one["name"].get<std::string>()),
              short_bytes(one["bytes"].get<std::uint64_t>()));
    }
    print("{}: {} entries, {}, {}; {}\n", (*file)->path().string(), entries.size(), short_bytes(view.bytes()),
          view.signer() ? fmt::format("signed by {}", view.signer()->hex()) : "unsigned",
          without_controls(*description));
    return ExitCode::ok;
}

ExitCode verify_bundle(const std::string& path, const CommonOptions& common) {
    const auto file = open_trusted_bundle(path, common);
    if (!file) {
        return report_not_sound(file.error(), common);
    }
    const auto& view = (*file)->view();
    const auto faults = view.verify();
    Json said = Json::array();
    for (const auto& fault : faults) {
        print_diagnostic(fmt::format("{}: {}", (*file)->path().string(), fault.message));
        said.push_back(to_json(fault));
    }
    if (common.json) {
        print_json({{"bundle", (*file)->path().string()},
                    {"sound", faults.empty()},
                    {"entries", view.num_entries()},
                    {"signer", signer_of(view)},
                    {"faults", said}});
    } else if (faults.empty()) {
        print("{}: sound, {} entries, {}, {}\n", (*file)->path().string(), view.num_entries(),
              short_bytes(view.bytes()),
              view.signer() ? fmt::format("signed by {}", view.signer()->hex()) : "unsigned");
    }
    return faults.empty() ? ExitCode::ok : ExitCode::check_failed;
}

Result<void> let_all_read(const std::filesystem::path& path, mode_t mode) {
    if (::chmod(path.c_str(), mode) != 0) {
        return fail(ErrorCode::io, Stage::cache, system_message("change the mode of", path, errno));
    }
    return {};
}

Result<void> install_entries(const cache::BundleView& view, cache::Store& store) {
    const auto records = view.records();
    if (!records) {
        return tl::unexpected(records.error());
    }
    for (const auto& record : *records) {
        const auto stored = view.stored(record);
        auto put = stored ? store.put(stored->key, stored->entry) : tl::unexpected<Error>(stored.error());
        if (!put) {
            return put;
        }
    }
    // A store is private, a layer is for everybody.
    const auto listed = store.list();
    if (!listed) {
        return tl::unexpected(listed.error());
    }
    Result<void> done = let_all_read(store.folder(), 0755);
    for (const auto& entry : *listed) {
        if (std::ranges::find(*records, entry.key, &cache::BundleRecord::key) == records->end()) {
            continue;  // somebody else's
        }
        const auto group = entry.path.parent_path();
        for (const auto& folder : {group.parent_path(), group}) {
            done = done ? let_all_read(folder, 0755) : done;
        }
        done = done ? let_all_read(entry.path, 0644) : done;
    }
    return done;
}

Result<void> install_tables(const std::vector<cache::BundleDocument>& documents,
                            const std::filesystem::path& folder) {
    std::error_code error;
    if (std::filesystem::create_directories(folder, error); error) {
        return fail(ErrorCode::io, Stage::cache, system_message("create", folder, error.value()));
    }
    auto done = let_all_read(folder, 0755);
    for (const auto& document : documents) {
        const auto path = folder / document.name;
        done = done ? publish_file(path, as_bytes(document.text), Stage::cache) : done;
        done = done ? let_all_read(path, 0644) : done;
    }
    return done;
}

// What to set KILN_SHAPES_PATH to, so that the tables go before one another as they did: the files, where the
// bundle says in which order; else their folder.
std::string shapes_path(const cache::BundleView& view, std::vector<std::string> there,
                        const std::filesystem::path& folder) {
    const auto description = view.description();
    const auto order = description ? read_description(*description).tables : std::vector<std::string>();
    auto sorted = order;
    std::ranges::sort(sorted);
    std::ranges::sort(there);
    if (sorted != there) {
        return folder.string();
    }
    std::string path;
    for (const auto& name : order) {
        path += fmt::format("{}{}", path.empty() ? "" : ":", (folder / name).string());
    }
    return path;
}

ExitCode install(const std::string& path, const std::string& folder, const CommonOptions& common) {
    const auto file = open_trusted_bundle(path, common);
    if (!file) {
        return report_not_sound(file.error(), common);
    }
    const auto& view = (*file)->view();
    if (const auto faults = view.verify(); !faults.empty()) {
        return report({faults.front().code, faults.front().stage,
                       fmt::format("{}: not installed: {}", path, faults.front().message)},
                      common);
    }
    const auto documents = view.documents();
    const auto store = cache::Store::open(folder);
    if (!store) {
        return report(store.error(), common);
    }
    const auto tables = (*store)->folder() / "shapes";
    auto done = install_tables(*documents, tables);
    done = done ? install_entries(view, **store) : done;
    if (!done) {
        return report(done.error(), common);
    }
    std::vector<std::string> names;
    for (const auto& document : *documents) {
        names.emplace_back(document.name);
    }
    const auto in_order = shapes_path(view, std::move(names), tables);
    if (common.json) {
        print_json({{"folder", (*store)->folder().string()},
                    {"entries", view.num_entries()},
                    {"tables", documents->size()},
                    {"shapes_path", in_order}});
    } else {
        print("{} entries in {}, {} tables in {}\nKILN_SHAPES_PATH={}\n", view.num_entries(),
              (*store)->folder().string(), documents->size(), tables.string(), in_order);
    }
    return ExitCode::ok;
}

struct Paths {
    std::string bundle;
    std::string folder;
};

}  // namespace

void add_bundle_inspect(CLI::App& bundle, Invocation& invocation) {
    auto* command = bundle.add_subcommand("inspect", "say what a bundle holds, and who signed it");
    auto paths = std::make_shared<Paths>();
    command->add_option("bundle", paths->bundle, "the file")->required();
    command->add_option("--tables", paths->folder, "write the tables that it carries into this folder");
    invocation.manuals.describe(
        *command, {.text = "Looks into any bundle, trusted or not; kiln bundle verify judges it.",
                   .examples = {{"kiln bundle inspect qwen.kiln", "what it holds, and who signed it"},
                                {"kiln bundle inspect qwen.kiln --tables shapes", "its tables as files"}},
                   .exits = {{0, "read"},
                             {1, "it is damaged"},
                             {2, "bad usage, or no such file"},
                             {3, "it can not be read, or the tables can not be written"},
                             {130, "interrupted"}}});
    command->callback([&invocation, paths] {
        invocation.run = [&invocation, paths] {
            return inspect(paths->bundle, paths->folder, invocation.common);
        };
    });
}

void add_bundle_verify(CLI::App& bundle, Invocation& invocation) {
    auto* command =
        bundle.add_subcommand("verify", "read all of a bundle, and hold it to its digests and its signature");
    auto paths = std::make_shared<Paths>();
    command->add_option("bundle", paths->bundle, "the file")->required();
    invocation.manuals.describe(
        *command,
        {.text = "With KILN_TRUSTED_KEYS set, one of those keys must have signed it.",
         .examples = {{"kiln bundle verify qwen.kiln", "every byte against its digests"},
                      {"KILN_TRUSTED_KEYS=KEY.pub kiln bundle verify qwen.kiln",
                       "and its signature against a key"}},
         .exits = {{0, "sound"},
                   {1, "altered, no bundle, unsigned where it must be signed, or writable by others"},
                   {2, "bad usage, or no such file"},
                   {3, "it can not be read"},
                   {130, "interrupted"}}});
    command->callback([&invocation, paths] {
        invocation.run = [&invocation, paths] { return verify_bundle(paths->bundle, invocation.common); };
    });
}

void add_bundle_install(CLI::App& bundle, Invocation& invocation) {
    auto* command = bundle.add_subcommand("install", "unpack a bundle into a folder for KILN_CACHE_PATH");
    auto paths = std::make_shared<Paths>();
    command->add_option("bundle", paths->bundle, "the file")->required();
    command->add_option("folder", paths->folder, "made where it does not exist; what is in it stays")
        ->required();
    invocation.manuals.describe(
        *command, {.text = "The bundle is verified first, and nothing is written unless it is sound. The "
                           "tables come to FOLDER/shapes; what is printed as KILN_SHAPES_PATH lets them go "
                           "before one another as they did where the bundle was made.\n\nWhat is "
                           "installed serves as any folder does: this machine's compiler, where there is "
                           "one, must have built it; a bundle that is named in KILN_CACHE_PATH itself "
                           "serves whoever built it.",
                   .examples = {{"kiln bundle install qwen.kiln /usr/lib/kiln/qwen",
                                 "for KILN_CACHE_PATH=/usr/lib/kiln/qwen"}},
                   .exits = {{0, "installed"},
                             {1, "it is not sound"},
                             {2, "bad usage, or no such file"},
                             {3, "it can not be read, or the folder can not be written"},
                             {130, "interrupted"}}});
    command->callback([&invocation, paths] {
        invocation.run = [&invocation, paths] {
            return install(paths->bundle, paths->folder, invocation.common);
        };
    });
}

void add_bundle(CLI::App& app, Invocation& invocation) {
    auto* command =
        app.add_subcommand("bundle", "ship a cache as one file: create, inspect, verify, install, merge");
    command->require_subcommand(1);
    invocation.manuals.describe(
        *command, {.text = "A bundle is one file of code objects with the tables that they were made from. "
                           "KILN_CACHE_PATH names it, and it serves a machine that has no compiler, "
                           "whatever compiler made it.",
                   .examples = {{"kiln bundle create --target gfx950 model.json -o qwen.kiln",
                                 "on a machine with a compiler; no GPU is needed"},
                                {"KILN_CACHE_PATH=qwen.kiln KILN_JIT=off kiln doctor",
                                 "what it serves on this machine"}},
                   .exits = {{0, "as each of its commands says"}, {2, "bad usage"}, {130, "interrupted"}}});
    add_bundle_create(*command, invocation);
    add_bundle_inspect(*command, invocation);
    add_bundle_verify(*command, invocation);
    add_bundle_install(*command, invocation);
    add_bundle_merge(*command, invocation);
}

}  // namespace kiln::cli
