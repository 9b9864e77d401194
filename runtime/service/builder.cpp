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

Result<ArtifactPtr> from_file(const operators::Specialisation& specialisation, const cache::Key& key,
                              cache::EntryFile file, const cache::Layer& place) {
    Result<Bytes> code_object = file.code_object();
    if (!code_object) {
        return fail(code_object);
    }
    const auto shared = std::make_shared<const cache::EntryFile>(std::move(file));
    const std::shared_ptr<Artifact> artifact = make_artifact(specialisation, key);
    artifact->code_object = *std::move(code_object);
    artifact->listing.set(shared, &cache::EntryFile::listing);
    artifact->metadata.set(shared, &cache::EntryFile::metadata);
    artifact->source = place.is_bundle() ? ArtifactSource::bundle : ArtifactSource::cache;
    return artifact;
}

}  // namespace

std::string_view to_text(ArtifactSource source) {
    switch (source) {
        case ArtifactSource::compiled:
            return "compiled";
        case ArtifactSource::bundle:
            return "bundle";
        case ArtifactSource::cache:
            break;
    }
    return "cache";
}

void EntryText::set(std::shared_ptr<const cache::EntryFile> entry, Decode decode) {
    entry_ = std::move(entry);
    decode_ = decode;
}

const std::string& EntryText::get() const {
    std::call_once(once_, [this] {
        if (entry_ == nullptr) {
            return;
        }
        Result<std::string> text = ((*entry_).*decode_)();
        if (text) {
            text_ = *std::move(text);
        } else {
            log::warning("{}", text.error().message);
        }
    });
    return text_;
}

Builder::Builder(CachePlaces places, CompilerFactory make_compiler, bool jit)
    : places_(std::move(places)), make_compiler_(std::move(make_compiler)), jit_(jit) {
    log_faults(places_);
    reported_no_cache_ = places_.store_fault.has_value();
}

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
    const auto& target = specialisation.request.target;
    Result<compile::Compiler*> compiler = this->compiler();
    const Result<compile::CompilerIdentity> identity =
        compiler ? (*compiler)->identity(target) : tl::unexpected<Error>(compiler.error());
    {
        const std::lock_guard lock(compiler_mutex_);
        if (identity) {
            without_compiler_.erase(compile::family_of(target));
        } else {
            without_compiler_.insert_or_assign(compile::family_of(target), identity.error());
        }
    }
    return identity ? cache::Key::make(specialisation.request_document, identity->document)
                    : Result<cache::Key>(tl::unexpected(identity.error()));
}

Result<cache::Key> Builder::remembered_key(const operators::Specialisation& specialisation) {
    {
        const std::lock_guard lock(compiler_mutex_);
        const auto known = without_compiler_.find(compile::family_of(specialisation.request.target));
        if (known != without_compiler_.end()) {
            return tl::unexpected(known->second);
        }
    }
    return key(specialisation);
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
    const auto forget = [&] {
        const std::lock_guard lock(mutex_);
        if (!only_in_memory_.contains(specialisation.request_document)) {
            // A store has it now, or a failed attempt may be made again.
            in_flight_.erase(specialisation.request_document);
        }
    };
    Outcome outcome = attempt();
    try {
        promise.set_value(outcome);
    } catch (...) {
        promise.set_exception(std::current_exception());
        forget();
        throw;
    }
    forget();
    return outcome;
}

Builder::Outcome Builder::build(const operators::Specialisation& specialisation) {
    const auto count_miss = [this] {
        const std::lock_guard lock(mutex_);
        statistics_.cache_misses += has_places() ? 1 : 0;
    };
    Result<cache::Key> key = remembered_key(specialisation);
    if (!key) {
        if (std::optional<ArtifactPtr> found = look_by_request(specialisation, Count::yes)) {
            return *std::move(found);
        }
    } else if (std::optional<ArtifactPtr> found = look(specialisation, *key, Count::yes)) {
        return *std::move(found);
    }
    if (!jit_) {
        count_miss();
        return fail(ErrorCode::environment, Stage::compile,
                    fmt::format("{} is not in the cache, and KILN_JIT=off forbids to compile it",
                                label(specialisation)));
    }
    if (!key) {
        key = this->key(specialisation);
    }
    if (!key) {
        count_miss();
        return fail(ErrorCode::environment, Stage::compile,
                    fmt::format("{} is not in the cache and can not be compiled: {}", label(specialisation),
                                key.error().message));
    }
    std::unique_ptr<cache::BuildLock> build_lock;
    if (places_.store != nullptr) {
        Result<std::unique_ptr<cache::BuildLock>> lock = places_.store->lock(*key, {.stop = &stopped_});
        if (!lock) {
            // Two compiles are better than none.
            report_no_cache(lock.error());
        } else {
            build_lock = *std::move(lock);
            // Whoever held the lock may have built it.
            if (std::optional<ArtifactPtr> found = look(specialisation, *key, Count::yes)) {
                return *std::move(found);
            }
        }
    }
    count_miss();
    Result<compile::Compiler*> compiler = this->compiler();
    return compiler ? compile_and_put(specialisation, *key, **compiler) : Outcome(fail(compiler));
}

void Builder::stop() noexcept {
    stopped_ = true;
    const std::lock_guard lock(compiler_mutex_);
    if (compiler_ != nullptr) {
        compiler_->stop();
    }
}

Builder::Outcome Builder::compile_and_put(const operators::Specialisation& specialisation,
                                          const cache::Key& key, compile::Compiler& compiler) {
    const auto stopped = [&] {
        return fail(ErrorCode::environment, Stage::compile,
                    fmt::format("{}: not compiled, the service was stopped", label(specialisation)));
    };
    if (stopped_) {
        return stopped();
    }
    Result<compile::CompileResult> result = compiler.compile(specialisation.request);
    if (!result && stopped_) {
        return stopped();  // whatever the compiler says of it, the specialisation is not to blame
    }
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
    log::event(log::Level::info, "compile",
               {{"kernel", specialisation.kernel_name},
                {"template", specialisation.bucket.template_id},
                {"target", specialisation.request.target},
                {"seconds", result->seconds}});
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
    artifact->metadata.set(describe_artifact(specialisation, *code_object, result->seconds));
    artifact->code_object = std::move(result->code_object);
    artifact->listing.set(std::move(result->listing));
    artifact->source = ArtifactSource::compiled;
    artifact->compile_seconds = result->seconds;
    const auto keep_in_memory = [&] {
        const std::lock_guard lock(mutex_);
        only_in_memory_.insert(specialisation.request_document);
    };
    if (places_.store == nullptr) {
        keep_in_memory();
        return artifact;
    }
    // The compiler may have been replaced since the key was made: which of the two built this is not known.
    const Result<cache::Key> key_now = this->key(specialisation);
    if (!key_now || *key_now != key) {
        log::warning("{}: compiled, but not kept: the compiler was replaced meanwhile",
                     label(specialisation));
        return artifact;
    }
    const Result<void> put =
        places_.store->put(key, {artifact->code_object, artifact->metadata.get(), artifact->listing.get()});
    if (!put) {
        report_no_cache(put.error());
        keep_in_memory();
    }
    return artifact;
}

std::optional<ArtifactPtr> Builder::obtain_kept(const operators::Specialisation& specialisation) {
    return look_everywhere(specialisation, Count::yes);
}

Result<std::optional<ArtifactPtr>> Builder::find(const operators::Specialisation& specialisation) {
    return look_everywhere(specialisation, Count::no);
}

std::optional<ArtifactPtr> Builder::look_everywhere(const operators::Specialisation& specialisation,
                                                    Count count) {
    if (!has_places()) {
        return std::nullopt;
    }
    const Result<cache::Key> key = remembered_key(specialisation);
    return key ? look(specialisation, *key, count) : look_by_request(specialisation, count);
}

std::vector<cache::Layer*> Builder::all_places() const {
    std::vector<cache::Layer*> all;
    if (places_.store != nullptr) {
        all.push_back(places_.store.get());
    }
    for (const std::unique_ptr<cache::Layer>& layer : places_.layers) {
        all.push_back(layer.get());
    }
    return all;
}

std::optional<ArtifactPtr> Builder::look(const operators::Specialisation& specialisation,
                                         const cache::Key& key, Count count) {
    for (cache::Layer* place : all_places()) {
        Result<std::optional<cache::EntryFile>> entry = place->find(key);
        if (!entry) {
            // A compile is better than none.
            report_no_cache(entry.error());
            continue;
        }
        if (!entry->has_value()) {
            continue;
        }
        Result<ArtifactPtr> artifact = from_file(specialisation, key, std::move(**entry), *place);
        if (artifact) {
            count_hit(*place, Match::key, count);
            return *std::move(artifact);
        }
        log::warning("{}: {}; taken for a miss", label(specialisation), artifact.error().message);
    }
    return take_by_request(specialisation, key.request_digest(), Places::bundles, count);
}

std::optional<ArtifactPtr> Builder::look_by_request(const operators::Specialisation& specialisation,
                                                    Count count) {
    // A build part of its own is only needed to make a key; the request's digest does not depend on it.
    const Result<cache::Key> wanted = cache::Key::make(specialisation.request_document, "{}");
    if (!wanted) {
        return std::nullopt;
    }
    return take_by_request(specialisation, wanted->request_digest(), Places::all, count);
}

std::optional<ArtifactPtr> Builder::take_by_request(const operators::Specialisation& specialisation,
                                                    const Digest& request, Places places, Count count) {
    for (cache::Layer* place : all_places()) {
        if (places == Places::bundles && !place->is_bundle()) {
            continue;
        }
        Result<std::optional<cache::EntryFile>> found = place->find_by_request(request);
        if (!found) {
            report_no_cache(found.error());
            continue;
        }
        if (!found->has_value()) {
            continue;
        }
        const Result<cache::Key> key = (*found)->key();
        Result<ArtifactPtr> artifact =
            key ? from_file(specialisation, *key, std::move(**found), *place) : tl::unexpected(key.error());
        if (artifact) {
            log::info("{}: taken from {} as another compiler built it", label(specialisation),
                      place->folder().string());
            count_hit(*place, Match::request, count);
            return *std::move(artifact);
        }
        log::warning("{}: {}; taken for a miss", label(specialisation), artifact.error().message);
    }
    return std::nullopt;
}

void Builder::count_hit(const cache::Layer& place, Match match, Count count) {
    if (count == Count::no) {
        return;
    }
    const std::lock_guard lock(mutex_);
    ++statistics_.cache_hits;
    statistics_.layer_hits += &place != places_.store.get() ? 1 : 0;
    statistics_.other_compiler_hits += match == Match::request ? 1 : 0;
}

void Builder::report_no_cache(const Error& error) {
    {
        const std::lock_guard lock(mutex_);
        if (std::exchange(reported_no_cache_, true)) {
            log::debug("{}", error.message);
            return;
        }
    }
    log::event(log::Level::warning, "no-cache",
               {{"reason", error.message}, {"outcome", "what no cache takes is kept in memory"}});
}

Result<void> Builder::probe(const operators::Specialisation& specialisation, const Error& error) {
    Result<compile::Compiler*> compiler = this->compiler();
    if (!compiler || !jit_) {  // with jit off nothing was refused by a compiler
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
    request.name = fmt::format("probe.{}", operators::source_suffix(specialisation.target));
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
    for (const cache::Layer* place : all_places()) {
        const cache::StoreStatistics counted = place->statistics();
        statistics.cache_damaged += counted.damaged;
        statistics.evictions += counted.evicted;
    }
    return statistics;
}

}  // namespace kiln::service
