#include "runtime/service/cache_places.hpp"

#include <sys/stat.h>

#include <set>
#include <system_error>
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

Result<cache::TrustedKeys> read_trusted_keys(const Settings& settings) {
    if (settings.trusted_keys.empty()) {
        return cache::TrustedKeys();
    }
    std::vector<PublicKey> keys;
    for (const std::filesystem::path& path : settings.trusted_keys) {
        auto key = PublicKey::read(path);
        if (!key) {
            return fail(key.error().code, Stage::configure,
                        fmt::format("KILN_TRUSTED_KEYS: {}", key.error().message));
        }
        keys.push_back(*key);
    }
    return cache::TrustedKeys(std::move(keys));
}

Result<std::unique_ptr<cache::Layer>> open_cache_layer(const std::filesystem::path& path,
                                                       const Settings& settings) {
    std::error_code unknown;
    if (!std::filesystem::is_regular_file(path, unknown)) {
        return cache::open_layer(path);
    }
    auto trusted = read_trusted_keys(settings);
    if (!trusted) {
        return fail(trusted.error().code, trusted.error().stage,
                    fmt::format("{}: bundle not looked into: {}", path.string(), trusted.error().message));
    }
    return cache::open_bundle_layer(path, *trusted);
}

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
        auto layer = open_cache_layer(folder, settings);
        if (!layer) {
            places.layer_faults.push_back(std::move(layer.error()));
        } else if (!taken.add((*layer)->folder())) {
            places.layer_faults.push_back(
                {ErrorCode::environment, Stage::cache,
                 fmt::format("cache layer {}: expected a place of its own, found the store or a layer named "
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
