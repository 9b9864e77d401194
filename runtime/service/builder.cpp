#include "runtime/service/builder.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "runtime/service/metadata.hpp"

namespace kiln::service {

namespace {

// What diagnostics call a specialisation.
std::string label(const operators::Specialisation& specialisation) {
    return fmt::format("{} ({} for {})", specialisation.kernel_name, specialisation.request.name,
                       specialisation.request.target);
}

std::shared_ptr<Artifact> make_artifact(const operators::Specialisation& specialisation,
                                        const cache::Key& key) {
    auto artifact = std::make_shared<Artifact>();
    artifact->specialisation = specialisation;
    artifact->key_document = key.document();
    artifact->key_digest = key.digest().hex();
    return artifact;
}

ArtifactPtr from_entry(const operators::Specialisation& specialisation, const cache::Key& key,
                       cache::Entry entry) {
    const std::shared_ptr<Artifact> artifact = make_artifact(specialisation, key);
    artifact->code_object = std::move(entry.code_object);
    artifact->listing = std::move(entry.listing);
    artifact->metadata = std::move(entry.metadata);
    artifact->source = ArtifactSource::cache;
    return artifact;
}

}  // namespace

std::string_view to_text(ArtifactSource source) {
    return source == ArtifactSource::compiled ? "compiled" : "cache";
}

Builder::Builder(std::unique_ptr<cache::Store> store, CompilerFactory make_compiler, bool jit)
    : store_(std::move(store)), make_compiler_(std::move(make_compiler)), jit_(jit) {}

Result<compile::Compiler*> Builder::compiler() {
    const std::lock_guard lock(compiler_mutex_);
    if (compiler_ == nullptr) {
        Result<std::unique_ptr<compile::Compiler>> made = make_compiler_();
        if (!made) {
            return fail(made);
        }
        compiler_ = *std::move(made);
    }
    return compiler_.get();
}

Result<cache::Key> Builder::key(const operators::Specialisation& specialisation) {
    Result<compile::Compiler*> compiler = this->compiler();
    if (!compiler) {
        return fail(compiler);
    }
    Result<compile::CompilerIdentity> identity = (*compiler)->identity();
    if (!identity) {
        return fail(identity);
    }
    return cache::Key::make(specialisation.request_document, identity->document);
}

Result<ArtifactPtr> Builder::obtain(const operators::Specialisation& specialisation) {
    // What throws, if only for want of memory, must reach every waiter as an error and leave no entry behind.
    const auto attempt = [&]() -> Outcome {
        try {
            return build(specialisation);
        } catch (const std::exception& exception) {
            return fail(ErrorCode::internal, Stage::compile, exception.what());
        }
    };
    std::promise<Outcome> promise;
    std::shared_future<Outcome> shared;
    {
        const std::lock_guard lock(mutex_);
        const auto found = in_flight_.find(specialisation.request_document);
        if (found != in_flight_.end()) {
            shared = found->second;
            ++statistics_.memory_hits;
        } else {
            in_flight_.emplace(specialisation.request_document, promise.get_future().share());
        }
    }
    if (shared.valid()) {
        return shared.get();
    }
    Outcome outcome = attempt();
    promise.set_value(outcome);
    if (store_ != nullptr || !outcome) {
        // The store has it now; a failed attempt may be made again.
        const std::lock_guard lock(mutex_);
        in_flight_.erase(specialisation.request_document);
    }
    return outcome;
}

Builder::Outcome Builder::build(const operators::Specialisation& specialisation) {
    Result<cache::Key> key = this->key(specialisation);
    if (!key) {
        if (auto found = find_by_request(specialisation); found && *found) {
            return **std::move(found);
        }
        return fail(ErrorCode::environment, Stage::compile,
                    fmt::format("{} is not in the cache and can not be compiled: {}", label(specialisation),
                                key.error().message));
    }

    const auto look = [&]() -> std::optional<ArtifactPtr> {
        if (store_ == nullptr) {
            return std::optional<ArtifactPtr>();
        }
        Result<std::optional<cache::Entry>> entry = store_->get(*key);
        if (!entry) {
            // A compile is better than none.
            log::warning("{}: {}; taken for a miss", label(specialisation), entry.error().message);
            return std::optional<ArtifactPtr>();
        }
        if (!entry->has_value()) {
            return std::optional<ArtifactPtr>();
        }
        const std::lock_guard lock(mutex_);
        ++statistics_.cache_hits;
        return from_entry(specialisation, *key, std::move(**entry));
    };

    if (std::optional<ArtifactPtr> found = look()) {
        return *std::move(found);
    }
    const auto count_miss = [this] {
        const std::lock_guard lock(mutex_);
        statistics_.cache_misses += store_ != nullptr ? 1 : 0;
    };
    if (!jit_) {
        count_miss();
        return fail(ErrorCode::not_found, Stage::compile,
                    fmt::format("{} is not in the cache, and KILN_JIT=off forbids to compile it",
                                label(specialisation)));
    }
    std::unique_ptr<cache::BuildLock> build_lock;
    if (store_ != nullptr) {
        Result<std::unique_ptr<cache::BuildLock>> lock = store_->lock(*key);
        if (!lock) {
            // Two compiles are better than none.
            log::warning("{}: {}", label(specialisation), lock.error().message);
        } else {
            build_lock = *std::move(lock);
            // Whoever held the lock may have built it.
            if (std::optional<ArtifactPtr> found = look()) {
                return *std::move(found);
            }
        }
    }
    count_miss();
    Result<compile::Compiler*> compiler = this->compiler();
    return compiler ? compile_and_put(specialisation, *key, **compiler) : Outcome(fail(compiler));
}

Builder::Outcome Builder::compile_and_put(const operators::Specialisation& specialisation,
                                          const cache::Key& key, compile::Compiler& compiler) {
    Result<compile::CompileResult> result = compiler.compile(specialisation.request);
    const auto count = [this](auto change) {
        const std::lock_guard lock(mutex_);
        change(statistics_);
    };
    if (!result) {
        count([](BuildStatistics& statistics) { ++statistics.compile_errors; });
        return fail(result.error().code, result.error().stage,
                    fmt::format("{}: {}", label(specialisation), result.error().message));
    }
    count([&](BuildStatistics& statistics) {
        ++statistics.compiles;
        statistics.compile_seconds += result->seconds;
    });

    if (!result->log.empty()) {
        log::warning("{}: {}", label(specialisation), result->log);
    }
    Result<compile::CodeObject> code_object = compile::read_code_object(result->code_object);
    if (!code_object) {
        return fail(ErrorCode::load_failed, Stage::load,
                    fmt::format("{}: {}", label(specialisation), code_object.error().message));
    }
    // What can not be loaded must not be kept.
    if (Result<void> checked = check_kernel_abi(specialisation, *code_object); !checked) {
        return fail(checked);
    }
    const std::shared_ptr<Artifact> artifact = make_artifact(specialisation, key);
    artifact->metadata = describe_artifact(specialisation, *code_object, result->seconds);
    artifact->code_object = std::move(result->code_object);
    artifact->listing = std::move(result->listing);
    artifact->source = ArtifactSource::compiled;
    artifact->compile_seconds = result->seconds;
    if (store_ == nullptr) {
        return artifact;
    }
    // The compiler may have been replaced since the key was made: which of the two built this is not known.
    const Result<cache::Key> key_now = this->key(specialisation);
    const Result<void> put =
        key_now && *key_now == key
            ? store_->put(key, {artifact->code_object, artifact->metadata, artifact->listing})
            : fail(ErrorCode::environment, Stage::cache, "the compiler was replaced meanwhile");
    if (!put) {
        log::warning("{}: compiled, but not kept in the cache: {}", label(specialisation),
                     put.error().message);
    }
    return artifact;
}

Result<std::optional<ArtifactPtr>> Builder::find(const operators::Specialisation& specialisation) {
    if (store_ == nullptr) {
        return std::optional<ArtifactPtr>();
    }
    const Result<cache::Key> key = this->key(specialisation);
    if (!key) {
        return find_by_request(specialisation);
    }
    Result<std::optional<cache::Entry>> entry = store_->get(*key);
    if (!entry) {
        return fail(entry);
    }
    if (!entry->has_value()) {
        return std::optional<ArtifactPtr>();
    }
    return std::optional(from_entry(specialisation, *key, std::move(**entry)));
}

Result<std::optional<ArtifactPtr>> Builder::find_by_request(const operators::Specialisation& specialisation) {
    if (store_ == nullptr) {
        return std::optional<ArtifactPtr>();
    }
    // A build part of its own is only needed to make a key; the request's digest does not depend on it.
    const Result<cache::Key> wanted = cache::Key::make(specialisation.request_document, "{}");
    const Result<std::vector<cache::EntrySummary>> entries = store_->list();
    if (!wanted || !entries) {
        return std::optional<ArtifactPtr>();
    }
    for (const cache::EntrySummary& summary : *entries) {
        Result<cache::StoredEntry> stored = store_->read(summary);
        if (stored && stored->key.request_digest() == wanted->request_digest()) {
            log::info("{}: no compiler here; taken from the cache as another compiler built it",
                      label(specialisation));
            const std::lock_guard lock(mutex_);
            ++statistics_.cache_hits;
            return std::optional(from_entry(specialisation, stored->key, std::move(stored->entry)));
        }
    }
    return std::optional<ArtifactPtr>();
}

Result<void> Builder::probe(const operators::Specialisation& specialisation, const Error& error) {
    Result<compile::Compiler*> compiler = this->compiler();
    if (!compiler) {
        return {};
    }
    if (error.code == ErrorCode::environment) {
        // Only what the compiler itself says of the target: a worker that can not be started says nothing.
        Result<void> able = (*compiler)->probe(specialisation.request.target);
        return able || able.error().code != ErrorCode::compile_failed ? Result<void>() : able;
    }
    if (error.code != ErrorCode::compile_failed) {
        return {};
    }
    compile::CompileRequest request;
    request.name = "probe.hip";
    request.source = specialisation.source_template->probe();
    request.target = specialisation.request.target;
    request.options = specialisation.request.options;
    const Result<compile::CompileResult> result = (*compiler)->compile(request);
    if (result || result.error().code != ErrorCode::compile_failed) {
        return {};
    }
    return fail(ErrorCode::environment, Stage::compile,
                fmt::format("the compiler can not build what {} needs for {}: {}",
                            specialisation.source_template->id(), request.target, result.error().message));
}

BuildStatistics Builder::statistics() const {
    BuildStatistics statistics;
    {
        const std::lock_guard lock(mutex_);
        statistics = statistics_;
    }
    if (store_ != nullptr) {
        statistics.cache_damaged = store_->statistics().damaged;
    }
    return statistics;
}

}  // namespace kiln::service
