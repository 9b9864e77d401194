#include "runtime/sim/hip/listing_source.hpp"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/digest.hpp"
#include "base/log.hpp"
#include "cache/store.hpp"
#include "runtime/compile/compiler.hpp"
#include "runtime/compile/identity.hpp"
#include "runtime/compile/toolchain.hpp"

namespace kiln::sim::hip {
namespace {

namespace fs = std::filesystem;

Result<compile::Compiler*> compiler() {
    static std::mutex mutex;
    static std::unique_ptr<compile::Compiler> made;  // protected by mutex
    const std::scoped_lock lock(mutex);
    if (made == nullptr) {
        compile::CompilerConfig config;
        config.workers = 1;
        auto created = compile::Compiler::create(config);
        if (!created) {
            return fail(created);
        }
        made = *std::move(created);
    }
    return made.get();
}

std::unique_ptr<cache::Store> open_store() {
    const char* const named = std::getenv("KILN_CACHE_DIR");
    Result<fs::path> folder = fs::path(named != nullptr ? named : "");
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

// Of the toolchain that compiler() would find: a listing that is kept needs no worker.
Result<std::string> build_document() {
    auto toolchain = compile::find_toolchain({});
    if (!toolchain) {
        return fail(toolchain);
    }
    auto components = compile::identify(*toolchain);
    if (!components) {
        return fail(components);
    }
    return compile::identity_document(*components);
}

}  // namespace

Result<std::string> listing_of(ByteView code_object) {
    const auto build = build_document();
    if (!build) {
        return tl::unexpected(build.error());
    }
    const auto request = fmt::format(R"({{"kind":"listing","schema":1,"code_object_sha256":"{}"}})",
                                     sha256(code_object).hex());
    const auto key = cache::Key::make(request, *build);
    if (!key) {
        return tl::unexpected(key.error());
    }
    static const std::unique_ptr<cache::Store> store = open_store();
    if (store != nullptr) {
        if (auto entry = store->get(*key); entry && *entry) {
            return std::move((*entry)->listing);
        }
    }
    auto worker = compiler();
    if (!worker) {
        return fail(worker);
    }
    // An environment that names another toolchain since the worker's was found must not get its listings.
    const auto identity = (*worker)->identity();
    const bool same = identity && identity->document == *build;
    auto listing = (*worker)->disassemble(code_object);
    if (listing && store != nullptr && same) {
        const cache::Entry entry{.code_object = {}, .metadata = R"({"kind":"listing"})", .listing = *listing};
        if (auto put = store->put(*key, entry); !put) {
            log::info("the simulator could not keep a listing: {}", put.error().message);
        }
    }
    return listing;
}

}  // namespace kiln::sim::hip
