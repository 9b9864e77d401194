// From a specialisation to its code object: out of the store, else out of the compiler and into the store.
//
// clang-format off
//   look in memory -> identity of the compiler -> key -> store, then layers -> bundles, by the request alone
//   -> (KILN_JIT=off: error) -> store.lock -> store -> compile -> store.put
// clang-format on
//
// One compile per key: threads of the process share a future, processes share the store's lock. What no store
// takes, because there is none or because it is full, read-only or gone, is kept in memory for as long as the
// builder lives, and that is said once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cache/store.hpp"
#include "runtime/compile/compiler.hpp"
#include "runtime/compile/target_family.hpp"
#include "runtime/operators/specialisation.hpp"
#include "runtime/service/cache_places.hpp"

namespace kiln::service {

enum class ArtifactSource { compiled, cache, bundle };
[[nodiscard]] std::string_view to_text(ArtifactSource source);  // "compiled", "cache", "bundle"

// Text that is decoded out of a cache entry only when somebody asks for it: a launch never does.
class EntryText {
  public:
    using Decode = Result<std::string> (cache::EntryFile::*)() const;

    // Both once, before others can see the object.
    void set(std::string text) { text_ = std::move(text); }
    void set(std::shared_ptr<const cache::EntryFile> entry, Decode decode);

    // Thread safe. Of an entry that verifies and yet does not decode: empty, with a warning in the log.
    [[nodiscard]] const std::string& get() const;

  private:
    std::shared_ptr<const cache::EntryFile> entry_;
    Decode decode_ = nullptr;
    mutable std::once_flag once_;
    mutable std::string text_;
};

// A code object and all that is known of it. Constant once made.
struct Artifact {
    operators::Specialisation specialisation;
    std::string key_document;  // canonical JSON
    std::string key_digest;    // 64 hexadecimal digits: the name of the cache entry
    Bytes code_object;
    EntryText listing;
    EntryText metadata;  // JSON; see metadata.hpp
    ArtifactSource source = ArtifactSource::compiled;
    double compile_seconds = 0;  // 0 when it came from the cache
};
using ArtifactPtr = std::shared_ptr<const Artifact>;

struct BuildStatistics {
    std::uint64_t cache_hits = 0;  // in the store or a layer
    std::uint64_t cache_misses = 0;
    std::uint64_t cache_damaged = 0;
    std::uint64_t layer_hits = 0;  // of cache_hits, those in a read-only layer
    // Of cache_hits, those that matched the request alone: built by another compiler, or there is none here.
    std::uint64_t other_compiler_hits = 0;
    std::uint64_t evictions = 0;  // entries that were pushed out of the store by newer ones
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
    // Says in the log which places are not used.
    Builder(CachePlaces places, CompilerFactory make_compiler, bool jit);

    // Blocks until the code object is there. A miss with jit off, or without a compiler, is an error of stage
    // compile that names the specialisation. A place that can not be read is a miss.
    [[nodiscard]] Result<ArtifactPtr> obtain(const operators::Specialisation& specialisation);

    // What obtain() would take from the store or a layer, in this thread and at once; nothing where it would
    // do more. A hit counts as one of obtain(). Where no compiler was found before, none is looked for again
    // until something is missed: the search goes through folders, and a bundle serves a hundred kernels.
    [[nodiscard]] std::optional<ArtifactPtr> obtain_kept(const operators::Specialisation& specialisation);

    // The same for who only looks: nothing is counted.
    [[nodiscard]] Result<std::optional<ArtifactPtr>> find(const operators::Specialisation& specialisation);

    // The key, or why there is none: without a compiler its build part is unknown. Looks for one each time:
    // what was missing may have been installed.
    [[nodiscard]] Result<cache::Key> key(const operators::Specialisation& specialisation);

    // After `error` of a compile: whether the compiler can build for the specialisation's target at all. An
    // error names it and what it says of a one-line kernel; anything else than a refused compile needs no
    // such question.
    [[nodiscard]] Result<void> probe(const operators::Specialisation& specialisation, const Error& error);

    // Ends the compiles under way and the waits for another process's, and compiles nothing from then on:
    // both are errors of the environment. What the store holds is still served. Any thread, more than once.
    void stop() noexcept;
    [[nodiscard]] bool is_stopped() const noexcept { return stopped_; }

    // The compiler, made at the first call. A failed attempt is made again at the next: what was missing may
    // have been installed.
    [[nodiscard]] Result<compile::Compiler*> compiler();
    [[nodiscard]] cache::Store* store() const { return places_.store.get(); }
    [[nodiscard]] const CachePlaces& places() const { return places_; }
    [[nodiscard]] BuildStatistics statistics() const;

  private:
    using Outcome = Result<ArtifactPtr>;

    [[nodiscard]] Outcome build(const operators::Specialisation& specialisation);
    [[nodiscard]] Outcome compile_and_put(const operators::Specialisation& specialisation,
                                          const cache::Key& key, compile::Compiler& compiler);
    // The key by what is known of the compiler: where none was found before, that error again.
    [[nodiscard]] Result<cache::Key> remembered_key(const operators::Specialisation& specialisation);
    enum class Count { yes, no };
    [[nodiscard]] std::optional<ArtifactPtr> look_everywhere(const operators::Specialisation& specialisation,
                                                             Count count);
    // In the store, then in the layers; then in the bundles whatever compiler built it. A place that can not
    // be read has nothing.
    [[nodiscard]] std::optional<ArtifactPtr> look(const operators::Specialisation& specialisation,
                                                  const cache::Key& key, Count count);
    // Without a compiler nothing can be built, so nothing built by another compiler can be mistaken for it:
    // what store and layers hold for the request alone is then taken.
    [[nodiscard]] std::optional<ArtifactPtr> look_by_request(const operators::Specialisation& specialisation,
                                                             Count count);
    enum class Places { all, bundles };
    [[nodiscard]] std::optional<ArtifactPtr> take_by_request(const operators::Specialisation& specialisation,
                                                             const Digest& request, Places places,
                                                             Count count);
    [[nodiscard]] bool has_places() const { return places_.store != nullptr || !places_.layers.empty(); }
    [[nodiscard]] std::vector<cache::Layer*> all_places() const;
    enum class Match { key, request };
    void count_hit(const cache::Layer& place, Match match, Count count);
    // The store fails, and may fail at every bucket: once in the log.
    void report_no_cache(const Error& error);

    const CachePlaces places_;
    const CompilerFactory make_compiler_;
    const bool jit_;
    std::atomic<bool> stopped_{false};

    std::mutex compiler_mutex_;
    // Protected by compiler_mutex_.
    std::unique_ptr<compile::Compiler> compiler_;
    std::map<compile::Family, Error> without_compiler_;  // why the last key() of the family failed

    mutable std::mutex mutex_;
    // By request document; protected by mutex_. Those that no store has stay when they are finished.
    std::map<std::string, std::shared_future<Outcome>> in_flight_;
    std::set<std::string> only_in_memory_;  // request documents; protected by mutex_
    BuildStatistics statistics_;            // protected by mutex_
    bool reported_no_cache_ = false;        // protected by mutex_
};

}  // namespace kiln::service
