#include "runtime/service/bucket_loader.hpp"

#include <algorithm>
#include <future>
#include <system_error>

#include <fmt/format.h>

#include "base/log.hpp"
#include "base/signals_blocked.hpp"
#include "runtime/service/budget.hpp"
#include "runtime/service/metadata.hpp"

namespace kiln::service {

namespace {

using operators::Answer;
using operators::Pipeline;
using operators::Refusal;
using operators::Specialisation;
using operators::SpecialisedStage;

// Errors that speak of the specialisation itself, so that trying again would only fail again. A cache that is
// not warm or a compiler that is not installed may be put right while the process runs.
bool disables(const Error& error) {
    switch (error.code) {
        case ErrorCode::compile_failed:
        case ErrorCode::worker_failed:
        case ErrorCode::load_failed:
            return true;
        default:
            return false;
    }
}

// A module that a reset of the device took from under the plans that hold it gives no function any more.
bool is_alive(device::Module& module, const Specialisation& specialisation) {
    return std::ranges::all_of(specialisation.kernels, [&module](const operators::KernelLaunch& kernel) {
        return module.function(kernel.symbol).has_value();
    });
}

}  // namespace

ArtifactSource LoadedBucket::source() const {
    const auto any = [this](ArtifactSource one) { return std::ranges::find(sources, one) != sources.end(); };
    return any(ArtifactSource::compiled) ? ArtifactSource::compiled
           : any(ArtifactSource::bundle) ? ArtifactSource::bundle
                                         : ArtifactSource::cache;
}

std::shared_ptr<BucketLoader::Resident> BucketLoader::resident(int ordinal,
                                                               const Specialisation& specialisation) {
    const Digest digest = sha256(specialisation.request_document);
    const std::lock_guard lock(mutex_);
    if (residents_.size() >= next_forget_) {
        forget_unused();
    }
    std::shared_ptr<Resident>& resident = residents_[{ordinal, digest}];
    if (resident == nullptr) {
        resident = std::make_shared<Resident>();
    }
    return resident;
}

void BucketLoader::forget_unused() {
    std::erase_if(residents_,
                  [](const auto& entry) { return entry.second.use_count() == 1 && !entry.second->disabled; });
    next_forget_ = std::max<std::size_t>(256, 2 * residents_.size());
}

std::shared_ptr<Health> BucketLoader::health(int ordinal, const Specialisation& specialisation) {
    return resident(ordinal, specialisation);
}

bool BucketLoader::is_disabled(int ordinal, const Specialisation& specialisation) {
    if (health(ordinal, specialisation)->disabled) {
        return true;
    }
    const Digest digest = sha256(specialisation.request_document);
    const std::lock_guard lock(mutex_);
    return not_to_be_built_.contains(digest);
}

std::optional<Refusal> BucketLoader::disabled(int ordinal, const Pipeline& pipeline) {
    for (const auto& [specialisation, offset] : pipeline.stages) {
        if (is_disabled(ordinal, specialisation)) {
            const bool is_alone = pipeline.stages.size() == 1;
            return Refusal{KILN_DECLINE_DISABLED,
                           {ErrorCode::invalid_argument, Stage::configure,
                            fmt::format("{}{} failed earlier",
                                        is_alone ? "" : fmt::format("{}: its stage ", pipeline.kernel_name),
                                        specialisation.kernel_name)}};
        }
    }
    return std::nullopt;
}

Refusal BucketLoader::refuse(int ordinal, const Specialisation& specialisation, Error error) {
    if (error.stage == Stage::compile) {
        if (const Result<void> able = builder_->probe(specialisation, error); !able) {
            return {KILN_DECLINE_COMPILER,
                    {ErrorCode::invalid_argument, Stage::compile, able.error().message}};
        }
    }
    if (disables(error)) {
        if (error.stage == Stage::compile) {
            const Digest digest = sha256(specialisation.request_document);
            const std::lock_guard lock(mutex_);
            not_to_be_built_.insert(digest);
        }
        ledger_.disable(*health(ordinal, specialisation), specialisation.kernel_name, error.message);
    }
    return {0, std::move(error)};
}

std::vector<Result<ArtifactPtr>> BucketLoader::obtain_artifacts(const Wanted& wanted) {
    std::map<std::string_view, std::optional<Result<ArtifactPtr>>> by_request;
    Wanted missing;
    for (const Specialisation* specialisation : wanted) {
        const auto [entry, is_new] = by_request.try_emplace(specialisation->request_document);
        if (!is_new) {
            continue;
        }
        // What is kept is here sooner than a thread that would look for it.
        if (std::optional<ArtifactPtr> kept = builder_->obtain_kept(*specialisation)) {
            entry->second = *std::move(kept);
        } else {
            missing.push_back(specialisation);
        }
    }
    std::vector<std::future<Result<ArtifactPtr>>> pending;
    for (const Specialisation* specialisation : missing) {
        const auto obtain = [this, specialisation] { return builder_->obtain(*specialisation); };
        // The last one is this thread's own.
        const bool is_last = specialisation == missing.back();
        try {
            const SignalsBlocked blocked;
            pending.push_back(std::async(is_last ? std::launch::deferred : std::launch::async, obtain));
        } catch (const std::system_error&) {
            // No thread to be had: this one does it, below.
            pending.push_back(std::async(std::launch::deferred, obtain));
        }
    }
    for (std::future<Result<ArtifactPtr>>& result : pending) {
        if (result.wait_for(std::chrono::seconds(0)) == std::future_status::deferred) {
            result.wait();
        }
    }
    for (std::size_t i = 0; i < missing.size(); ++i) {
        by_request.at(missing[i]->request_document) = pending[i].get();
    }
    std::vector<Result<ArtifactPtr>> results;
    for (const Specialisation* specialisation : wanted) {
        results.push_back(*by_request.at(specialisation->request_document));
    }
    return results;
}

Result<std::shared_ptr<device::Module>> BucketLoader::load_module(device::Device& device,
                                                                  const Artifact& artifact,
                                                                  Resident& resident) {
    const std::lock_guard lock(resident.mutex);
    if (std::shared_ptr<device::Module> loaded = resident.module.lock();
        loaded != nullptr && resident.key_digest == artifact.key_digest &&
        is_alive(*loaded, artifact.specialisation)) {
        return loaded;
    }
    const std::string& kernel_name = artifact.specialisation.kernel_name;
    Result<std::unique_ptr<device::Module>> module = device.load(artifact.code_object);
    ++loads_;
    if (!module) {
        return fail(module.error().code, module.error().stage,
                    fmt::format("{}: {}", kernel_name, module.error().message));
    }
    log::event(
        log::Level::info, "load",
        {{"kernel", kernel_name}, {"device", device.info().ordinal}, {"source", to_text(artifact.source)}});
    std::shared_ptr<device::Module> shared = *std::move(module);
    resident.module = shared;
    resident.key_digest = artifact.key_digest;
    return shared;
}

Result<void> BucketLoader::load_stage(device::Device& device, const SpecialisedStage& stage,
                                      const Artifact& artifact, LoadedBucket& bucket) {
    // The artifact's own may be of another bucket, with another budget, that came to the same code.
    const Specialisation& specialisation = stage.specialisation;
    const Result<compile::CodeObject> code_object = compile::read_code_object(artifact.code_object);
    if (!code_object) {
        return fail(ErrorCode::load_failed, Stage::load,
                    fmt::format("{}: {}", specialisation.kernel_name, code_object.error().message));
    }
    if (Result<void> checked = check_kernel_abi(specialisation, *code_object); !checked) {
        return checked;
    }
    const std::shared_ptr<Resident> resident = this->resident(device.info().ordinal, specialisation);
    Result<std::shared_ptr<device::Module>> module = load_module(device, artifact, *resident);
    if (!module) {
        return fail(module);
    }
    const auto index = static_cast<std::uint32_t>(bucket.modules.size());
    for (const operators::KernelLaunch& kernel : specialisation.kernels) {
        const Result<device::Function> function = (*module)->function(kernel.symbol);
        if (!function) {
            return tl::unexpected<Error>(function.error());
        }
        bucket.kernels.push_back({*function, kernel.shape, kernel.grid_x, stage.kernarg_offset,
                                  specialisation.source_template->kernargs().bytes, index});
    }
    bucket.modules.push_back(*std::move(module));
    bucket.sources.push_back(artifact.source);
    std::ranges::move(over_budget(specialisation, *code_object), std::back_inserter(bucket.over_budget));
    return {};
}

Answer<LoadedBucketPtr> BucketLoader::load(device::Device& device, const Pipeline& pipeline,
                                           std::span<const Result<ArtifactPtr>> artifacts) {
    const int ordinal = device.info().ordinal;
    for (std::size_t i = 0; i < artifacts.size(); ++i) {
        if (!artifacts[i]) {
            return tl::unexpected(refuse(ordinal, pipeline.stages[i].specialisation, artifacts[i].error()));
        }
    }
    auto bucket = std::make_unique<LoadedBucket>();
    for (std::size_t i = 0; i < artifacts.size(); ++i) {
        const SpecialisedStage& stage = pipeline.stages[i];
        if (Result<void> loaded = load_stage(device, stage, **artifacts[i], *bucket); !loaded) {
            return tl::unexpected(refuse(ordinal, stage.specialisation, std::move(loaded.error())));
        }
    }
    return LoadedBucketPtr(std::move(bucket));
}

Answer<LoadedBucketPtr> BucketLoader::obtain(device::Device& device, const Pipeline& pipeline) {
    if (std::optional<Refusal> disabled = this->disabled(device.info().ordinal, pipeline)) {
        return tl::unexpected(*std::move(disabled));
    }
    Wanted wanted;
    for (const SpecialisedStage& stage : pipeline.stages) {
        wanted.push_back(&stage.specialisation);
    }
    return load(device, pipeline, obtain_artifacts(wanted));
}

}  // namespace kiln::service
