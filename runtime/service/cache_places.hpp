// Where code objects are kept and looked for: the user's own store, and the read-only layers below it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cache/bundle_file.hpp"
#include "cache/layer.hpp"
#include "cache/store.hpp"
#include "runtime/service/settings.hpp"

namespace kiln::service {

struct CachePlaces {
    std::unique_ptr<cache::Store> store;                // null: what is compiled is kept in memory
    std::vector<std::unique_ptr<cache::Layer>> layers;  // in the order of KILN_CACHE_PATH
    std::optional<Error> store_fault;                   // why there is no store
    std::vector<Error> layer_faults;                    // of each layer that is not looked into: why
};

// A place that can not be used is left out: kiln runs without it. So is a layer that is the store or an
// earlier layer under any name: each folder, each bundle is looked into once. Where a key of
// KILN_TRUSTED_KEYS can not be read, no bundle is. With Create::no, a folder that does not exist is left
// alone, and no fault.
enum class Create { yes, no };
[[nodiscard]] CachePlaces open_cache(const Settings& settings, Create create);

// One layer of KILN_CACHE_PATH: a file is a bundle, anything else a folder.
[[nodiscard]] Result<std::unique_ptr<cache::Layer>> open_cache_layer(const std::filesystem::path& path,
                                                                     const Settings& settings);
// The keys of the settings; bad_input, not_found or io names the variable and the file.
[[nodiscard]] Result<cache::TrustedKeys> read_trusted_keys(const Settings& settings);

// One line in the log for each fault.
void log_faults(const CachePlaces& places);

}  // namespace kiln::service
