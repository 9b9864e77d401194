// From a specialisation to its code object: out of the store, else out of the compiler and into the store.
//
// clang-format off
//   look in memory -> identity of the compiler -> key -> store.get -> (KILN_JIT=off: error)
//   -> store.lock -> store.get -> compile -> store.put
// clang-format on
//
// One compile per key: threads of the process share a future, processes share the store's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cache/store.hpp"
#include "runtime/compile/compiler.hpp"
#include "runtime/operators/specialisation.hpp"
#include "runtime/service/settings.hpp"

namespace kiln::service {

enum class ArtifactSource { compiled, cache };
[[nodiscard]] std::string_view to_text(ArtifactSource source);  // "compiled", "cache"

// A code object and all that is known of it. Constant once made.
struct Artifact {
    operators::Specialisation specialisation;
    std::string key_document;  // canonical JSON
    std::string key_digest;    // 64 hexadecimal digits: the name of the cache entry
    Bytes code_object;
    std::string listing;
    std::string metadata;  // JSON; see metadata.hpp
    ArtifactSource source = ArtifactSource::compiled;
    double compile_seconds = 0;  // 0 when it came from the cache
};
using ArtifactPtr = std::shared_ptr<const Artifact>;

struct BuildStatistics {
    std::uint64_t cache_hits = 0;
    std::uint64_t cache_misses = 0;
    std::uint64_t cache_damaged = 0;
    std::uint64_t memory_hits = 0;
    std::uint64_t compiles = 0;
    std::uint64_t compile_errors = 0;
    double compile_seconds = 0;
};

// Makes the compiler the first time that one is needed; a test hands in its own.
using CompilerFactory = std::function<Result<std::unique_ptr<compile::Compiler>>()>;

// Thread safe.
class Builder {
  public:
    // `store` may be null: what is compiled is then kept in memory for as long as the builder lives.
    Builder(std::unique_ptr<cache::Store> store, CompilerFactory make_compiler, bool jit);

    // Blocks until the code object is there. A miss with jit off, or without a compiler, is an error of stage
    // compile that names the specialisation. A store that can not be read is a miss.
    [[nodiscard]] Result<ArtifactPtr> obtain(const operators::Specialisation& specialisation);

    // The same without ever compiling or waiting: nothing where the store has none.
    [[nodiscard]] Result<std::optional<ArtifactPtr>> find(const operators::Specialisation& specialisation);

    // The key, or why there is none: without a compiler its build part is unknown.
    [[nodiscard]] Result<cache::Key> key(const operators::Specialisation& specialisation);

    // After `error` of a compile: whether the compiler can build for the specialisation's target at all. An
    // error names it and what it says of a one-line kernel; anything else than a refused compile needs no
    // such question.
    [[nodiscard]] Result<void> probe(const operators::Specialisation& specialisation, const Error& error);

    // The compiler, made at the first call. A failed attempt is made again at the next: what was missing may
    // have been installed.
    [[nodiscard]] Result<compile::Compiler*> compiler();
    [[nodiscard]] cache::Store* store() const { return store_.get(); }
    [[nodiscard]] BuildStatistics statistics() const;

  private:
    using Outcome = Result<ArtifactPtr>;

    [[nodiscard]] Outcome build(const operators::Specialisation& specialisation);
    [[nodiscard]] Outcome compile_and_put(const operators::Specialisation& specialisation,
                                          const cache::Key& key, compile::Compiler& compiler);
    // Without a compiler nothing can be built, so nothing built by another compiler can be mistaken for it:
    // what the store holds for the request alone is then taken.
    [[nodiscard]] Result<std::optional<ArtifactPtr>> find_by_request(
        const operators::Specialisation& specialisation);

    const std::unique_ptr<cache::Store> store_;
    const CompilerFactory make_compiler_;
    const bool jit_;

    std::mutex compiler_mutex_;
    std::unique_ptr<compile::Compiler> compiler_;  // protected by compiler_mutex_

    mutable std::mutex mutex_;
    // By request document. Without a store, finished ones stay.
    std::map<std::string, std::shared_future<Outcome>> in_flight_;  // protected by mutex_
    BuildStatistics statistics_;                                    // protected by mutex_
};

}  // namespace kiln::service
