#include "tools/kiln/bundle_files.hpp"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/file.hpp"
#include "runtime/service/cache_places.hpp"
#include "runtime/service/log_settings.hpp"
#include "runtime/service/version.hpp"
#include "tools/kiln/new_file.hpp"

namespace kiln::cli {

Result<BundlePtr> open_trusted_bundle(const std::string& path, const CommonOptions& common) {
    const auto settings = read_settings(common);
    if (!settings) {
        return tl::unexpected(settings.error());
    }
    service::adopt_log(*settings);
    const auto trusted = service::read_trusted_keys(*settings);
    return trusted ? cache::BundleFile::open(path, *trusted)
                   : Result<BundlePtr>(tl::unexpected(trusted.error()));
}

ExitCode report_not_sound(const Error& error, const CommonOptions& common) {
    const auto code = report(error, common);
    return error.code == ErrorCode::environment ? ExitCode::check_failed : code;
}

Json signer_of(const cache::BundleView& view) {
    return view.signer() ? Json(view.signer()->hex()) : Json();
}

void BundleDocuments::add(const std::string& name, std::string_view text) {
    auto free = name;
    for (int number = 2;; ++number) {
        const auto [there, added] = texts_.emplace(free, text);
        if (added) {
            names_.push_back(free);
        }
        if (there->second == text) {
            return;
        }
        free = fmt::format("{}-{}", number, name);
    }
}

Result<void> BundleDocuments::add_to(cache::BundleWriter& writer) const {
    for (const auto& [name, text] : texts_) {
        if (auto added = writer.add_document(name, text); !added) {
            return added;
        }
    }
    return {};
}

void add_output_options(CLI::App& command, BundleOutput& output) {
    command.add_option("-o,--out", output.path, "the bundle to write; never over what is there")->required();
    command.add_option("--sign", output.key_file, "PEM file of the Ed25519 private key to sign with");
}

Result<std::optional<SigningKey>> ready_output(const BundleOutput& output) {
    std::error_code unknown;
    if (std::filesystem::exists(std::filesystem::symlink_status(output.path, unknown))) {
        return fail(ErrorCode::bad_input, Stage::configure,
                    fmt::format("-o {}: expected no file of that name, found one", output.path));
    }
    if (auto folder = check_folder_of(output.path, fmt::format("-o {}", output.path)); !folder) {
        return fail(folder);
    }
    if (output.key_file.empty()) {
        return std::optional<SigningKey>();
    }
    auto key = SigningKey::read(output.key_file);
    return key ? Result<std::optional<SigningKey>>(*std::move(key)) : fail(key);
}

std::string to_text(const BundleDescription& description) {
    Json said{
        {"kiln", service::kVersion}, {"targets", description.targets}, {"listings", description.listings}};
    if (!description.tables.empty()) {
        said["tables"] = description.tables;
    }
    if (!description.shards.empty()) {
        said["shards"] = description.shards;
    }
    return said.dump();
}

BundleDescription read_description(std::string_view text) {
    const auto said = Json::parse(text);
    const auto words = [&said](const char* name) {
        std::vector<std::string> found;
        for (const auto& word : said.value(name, Json::array())) {
            if (word.is_string()) {
                found.push_back(word.get<std::string>());
            }
        }
        return found;
    };
    const auto targets = words("targets"), shards = words("shards");
    const auto listings = said.find("listings");
    return {.targets = std::set<std::string>(targets.begin(), targets.end()),
            .listings = listings != said.end() && *listings == Json(true),
            .tables = words("tables"),
            .shards = std::set<std::string>(shards.begin(), shards.end())};
}

Result<Json> write_bundle(const cache::BundleWriter& writer, const std::string& description,
                          const std::optional<SigningKey>& key, const std::string& path) {
    const auto bundle = writer.write(description, key ? &*key : nullptr);
    const auto view = bundle ? cache::BundleView::open(*bundle) : tl::unexpected<Error>(bundle.error());
    const auto published = view ? cache::publish_bundle(path, *bundle) : tl::unexpected<Error>(view.error());
    if (!published) {
        return tl::unexpected(published.error());
    }
    return Json{{"bundle", path},
                {"bytes", view->bytes()},
                {"entries", view->num_entries()},
                {"tables", view->num_documents()},
                {"contents", view->contents().hex()},
                {"signer", signer_of(*view)}};
}

}  // namespace kiln::cli
