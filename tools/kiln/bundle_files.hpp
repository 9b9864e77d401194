// What the bundle commands share: bundles that they read, and the one that they write.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/signature.hpp"
#include "cache/bundle_file.hpp"
#include "tools/kiln/command.hpp"
#include "tools/kiln/output.hpp"

namespace kiln::cli {

using BundlePtr = std::shared_ptr<const cache::BundleFile>;

// Opened as the settings have it, the trusted keys among them.
[[nodiscard]] Result<BundlePtr> open_trusted_bundle(const std::string& path, const CommonOptions& common);

// Reports why a bundle was not opened: one that is refused has failed its check, whoever is at fault.
[[nodiscard]] ExitCode report_not_sound(const Error& error, const CommonOptions& common);

// Who signed, as JSON has it: null where nobody did.
[[nodiscard]] Json signer_of(const cache::BundleView& view);

// The documents of a bundle to be. Another text under a name that is taken goes by "2-NAME", and so on.
class BundleDocuments {
  public:
    void add(const std::string& name, std::string_view text);
    [[nodiscard]] Result<void> add_to(cache::BundleWriter& writer) const;
    // As they were added first.
    [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

  private:
    std::map<std::string, std::string, std::less<>> texts_;  // by name
    std::vector<std::string> names_;
};

// What -o and --sign say.
struct BundleOutput {
    std::string path;
    std::string key_file;
};
void add_output_options(CLI::App& command, BundleOutput& output);

// The key to sign with, or nothing; to be asked for before any work is done. bad_input when there is a file
// in the place of the new one already, io when its folder can not be written.
[[nodiscard]] Result<std::optional<SigningKey>> ready_output(const BundleOutput& output);

// What the description of a bundle says.
struct BundleDescription {
    std::set<std::string> targets;
    bool listings = true;             // of every kernel
    std::vector<std::string> tables;  // by name, the strongest first; empty where that is not known
    std::set<std::string> shards;     // "I/N", where it is that part of a whole and no more; empty: a whole
};
[[nodiscard]] std::string to_text(const BundleDescription& description);
// Of one that anybody may have written: what is not as to_text() writes it counts as not said.
[[nodiscard]] BundleDescription read_description(std::string_view text);

// Puts it in place; what the commands say of it is the answer: path, bytes, entries, tables, contents,
// signer.
[[nodiscard]] Result<Json> write_bundle(const cache::BundleWriter& writer, const std::string& description,
                                        const std::optional<SigningKey>& key, const std::string& path);

}  // namespace kiln::cli
