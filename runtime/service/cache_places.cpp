#include "runtime/service/cache_places.hpp"

#include <sys/stat.h>

#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"

namespace kiln::service {
namespace {

// Which folders were taken already, whatever they are called.
class Taken {
  public:
    // False when it was; a folder that can not be looked at is taken for another one.
    bool add(const std::filesystem::path& folder) {
        struct stat info {};
        return ::stat(folder.c_str(), &info) != 0 || known_.insert({info.st_dev, info.st_ino}).second;
    }

  private:
    std::set<std::pair<dev_t, ino_t>> known_;
};

}  // namespace

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
    Taken taken;
    if (places.store != nullptr) {
        taken.add(places.store->folder());
    }
    for (const std::filesystem::path& folder : settings.cache_path) {
        auto layer = cache::open_layer(folder);
        if (!layer) {
            places.layer_faults.push_back(std::move(layer.error()));
        } else if (!taken.add((*layer)->folder())) {
            places.layer_faults.push_back(
                {ErrorCode::environment, Stage::cache,
                 fmt::format("cache layer {}: expected a folder of its own, found the store or a layer named "
                             "before",
                             (*layer)->folder().string())});
        } else {
            places.layers.push_back(*std::move(layer));
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
