#include "runtime/service/cache_places.hpp"

#include <utility>

#include "base/log.hpp"

namespace kiln::service {

CachePlaces open_cache(const Settings& settings, Create create) {
    CachePlaces places;
    if (settings.cache_dir.empty()) {
        places.store_fault =
            Error{ErrorCode::environment, Stage::cache,
                  "expected KILN_CACHE_DIR, or an absolute XDG_CACHE_HOME or HOME, found none"};
    } else {
        auto store = cache::Store::open(settings.cache_dir,
                                        {.max_bytes = settings.cache_limit, .create = create == Create::yes});
        if (store) {
            places.store = *std::move(store);
        } else if (create == Create::yes || store.error().code != ErrorCode::not_found) {
            places.store_fault = std::move(store.error());
        }
    }
    for (const std::filesystem::path& folder : settings.cache_path) {
        auto layer = cache::open_layer(folder);
        if (layer) {
            places.layers.push_back(*std::move(layer));
        } else {
            places.layer_faults.push_back(std::move(layer.error()));
        }
    }
    return places;
}

void log_faults(const CachePlaces& places) {
    if (places.store_fault) {
        log::event(
            log::Level::warning, "no-cache",
            {{"reason", places.store_fault->message}, {"outcome", "what is compiled is kept in memory"}});
    }
    for (const Error& fault : places.layer_faults) {
        log::event(log::Level::warning, "no-layer", {{"reason", fault.message}});
    }
}

}  // namespace kiln::service
