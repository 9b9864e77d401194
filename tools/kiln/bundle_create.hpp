// What `kiln bundle create` puts into a bundle, apart from the command line.
#pragma once

#include "cache/bundle.hpp"
#include "runtime/service/service.hpp"

namespace kiln::cli {

enum class Listings { keep, leave_out };

// One kernel's entry, and the entry of its listing that the simulator looks for: without what differs from
// one compile of the same thing to the next.
[[nodiscard]] Result<void> add_kernel(cache::BundleWriter& writer, const service::Artifact& artifact,
                                      Listings listings);

// Every shape table that the settings name, as a document under its file's name; a second one of that name,
// with another text, under "2-NAME". Their names, the strongest first.
[[nodiscard]] Result<std::vector<std::string>> add_tables(cache::BundleWriter& writer,
                                                          const service::Settings& settings);

}  // namespace kiln::cli
