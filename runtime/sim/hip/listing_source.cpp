#include "runtime/sim/hip/listing_source.hpp"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "cache/bundle_file.hpp"
#include "cache/store.hpp"
#include "runtime/compile/compiler.hpp"
#include "runtime/compile/identity.hpp"
#include "runtime/compile/listing_request.hpp"
#include "runtime/compile/toolchain.hpp"
#include "runtime/sim/hip/image.hpp"

namespace kiln::sim::hip {
namespace {

namespace fs = std::filesystem;

std::unique_ptr<cache::Store> open_store(const std::string& cache_folder) {
    const char* const named = std::getenv("KILN_CACHE_DIR");
    Result<fs::path> folder = fs::path(cache_folder);
    if (folder->empty() && named != nullptr) {
        folder = fs::path(named);
    }
    if (folder->empty()) {
        folder = cache::default_store_folder();
    }
    auto store = folder ? cache::Store::open(*folder) : fail(folder);
    if (!store) {
        log::info("the simulator goes on without a cache: {}", store.error().message);
        return nullptr;
    }
    return *std::move(store);
}

// The read-only folders and bundles: a code object that came out of one has its listing there too. Who signed
// a bundle does not matter here, for the program checks that a listing is of the instructions that it
// executes.
std::vector<std::unique_ptr<cache::Layer>> open_layers(const std::string& cache_path) {
    std::vector<std::unique_ptr<cache::Layer>> layers;
    const char* const named = std::getenv("KILN_CACHE_PATH");
    std::string_view rest = !cache_path.empty() ? cache_path.c_str() : named != nullptr ? named : "";
    while (!rest.empty()) {
        const auto path = rest.substr(0, rest.find(':'));
        rest.remove_prefix(std::min(path.size() + 1, rest.size()));
        if (path.empty()) {
            continue;
        }
        std::error_code unknown;
        auto layer = fs::is_regular_file(path, unknown) ? cache::open_bundle_layer(path, cache::TrustedKeys())
                                                        : cache::open_layer(path);
        if (layer) {
            layers.push_back(*std::move(layer));
        } else {
            log::info("the simulator goes on without a layer: {}", layer.error().message);
        }
    }
    return layers;
}

// The store, the layers and the worker behind one set of places.
class Source {
  public:
    explicit Source(ListingPlaces places)
        : places_(std::move(places)),
          store_(open_store(places_.cache_folder)),
          layers_(open_layers(places_.cache_path)) {
        if (store_ != nullptr) {
            kept_in_.push_back(store_.get());
        }
        std::ranges::transform(layers_, std::back_inserter(kept_in_), &std::unique_ptr<cache::Layer>::get);
    }

    [[nodiscard]] const ListingPlaces& places() const { return places_; }
    [[nodiscard]] Result<std::string> listing_of(ByteView code_object);

  private:
    [[nodiscard]] compile::CompilerConfig config() const {
        compile::CompilerConfig config;
        config.worker = places_.worker;
        config.workers = 1;
        return config;
    }
    [[nodiscard]] Result<std::string> build_document() const;
    // What this compiler made of it, or nothing.
    [[nodiscard]] std::optional<std::string> kept(const cache::Key& key) const;
    // What any compiler made of it; `why` where there is none.
    [[nodiscard]] Result<std::string> kept_by_any_compiler(const std::string& request,
                                                           const Error& why) const;
    [[nodiscard]] Result<compile::Compiler*> compiler();

    const ListingPlaces places_;
    const std::unique_ptr<cache::Store> store_;  // null: done without
    const std::vector<std::unique_ptr<cache::Layer>> layers_;
    std::vector<cache::Layer*> kept_in_;  // the store, then the layers; constant after construction

    std::mutex mutex_;
    std::unique_ptr<compile::Compiler> compiler_;  // protected by mutex_
};

// Of the toolchain that compiler() would find: a listing that is kept needs no worker.
Result<std::string> Source::build_document() const {
    auto toolchain = compile::find_toolchain(config(), compile::Family::amdgpu);
    if (!toolchain) {
        return fail(toolchain);
    }
    auto components = compile::identify(*toolchain);
    if (!components) {
        return fail(components);
    }
    return compile::identity_document(*components);
}

Result<compile::Compiler*> Source::compiler() {
    const std::scoped_lock lock(mutex_);
    if (compiler_ == nullptr) {
        auto created = compile::Compiler::create(config());
        if (!created) {
            return fail(created);
        }
        compiler_ = *std::move(created);
    }
    return compiler_.get();
}

std::optional<std::string> Source::kept(const cache::Key& key) const {
    for (auto* place : kept_in_) {
        if (auto entry = place->get(key); entry && *entry) {
            return std::move((*entry)->listing);
        }
    }
    return std::nullopt;
}

// Whichever it was, the program checks that the listing is of this code object's instructions.
Result<std::string> Source::kept_by_any_compiler(const std::string& request, const Error& why) const {
    // The digest of the request does not depend on the build part.
    const auto wanted = cache::Key::make(request, "{}");
    for (auto* place : kept_in_) {
        if (!wanted) {
            break;
        }
        if (const auto found = place->find_by_request(wanted->request_digest()); found && *found) {
            return (*found)->listing();
        }
    }
    return tl::unexpected(why);
}

Result<std::string> Source::listing_of(ByteView code_object) {
    const auto request = compile::listing_request(code_object);
    const auto build = build_document();
    if (!build) {
        return kept_by_any_compiler(request, build.error());
    }
    const auto key = cache::Key::make(request, *build);
    if (!key) {
        return tl::unexpected(key.error());
    }
    if (auto listing = kept(*key)) {
        return *std::move(listing);
    }
    auto worker = compiler();
    if (!worker) {
        return kept_by_any_compiler(request, worker.error());
    }
    // An environment that names another toolchain since the worker's was found must not get its listings.
    const auto identity = (*worker)->identity(kDeviceTarget);
    const bool same = identity && identity->document == *build;
    auto listing = (*worker)->disassemble(code_object);
    if (listing && store_ != nullptr && same) {
        const cache::Entry entry{
            .code_object = {}, .metadata = compile::kListingMetadata, .listing = *listing};
        if (auto put = store_->put(*key, entry); !put) {
            log::info("the simulator could not keep a listing: {}", put.error().message);
        }
    }
    return listing;
}

// One for each of the places asked for last. Never destroyed, since threads of the program may load until the
// very end.
std::shared_ptr<Source> source_of(const ListingPlaces& places) {
    constexpr std::size_t kKept = 8;
    static auto* const mutex = new std::mutex;
    static auto* const kept = new std::deque<std::shared_ptr<Source>>;  // last used first; protected by mutex
    const std::scoped_lock lock(*mutex);
    const auto found =
        std::ranges::find_if(*kept, [&](const auto& source) { return source->places() == places; });
    auto source = found != kept->end() ? *found : std::make_shared<Source>(places);
    if (found != kept->end()) {
        kept->erase(found);
    } else if (kept->size() == kKept) {
        kept->pop_back();
    }
    kept->push_front(source);
    return source;
}

}  // namespace

Result<std::string> listing_of(ByteView code_object, const ListingPlaces& places) {
    return source_of(places)->listing_of(code_object);
}

}  // namespace kiln::sim::hip
