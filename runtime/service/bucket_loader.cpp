#include "runtime/service/bucket_loader.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/log.hpp"
#include "runtime/service/budget.hpp"
#include "runtime/service/metadata.hpp"

namespace kiln::service {

namespace {

using operators::Answer;
using operators::Refusal;
using operators::Specialisation;

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

}  // namespace

Refusal BucketLoader::disabled(const Specialisation& specialisation) {
    return {KILN_DECLINE_DISABLED,
            {ErrorCode::invalid_argument, Stage::configure,
             fmt::format("{} failed earlier", specialisation.kernel_name)}};
}

std::shared_ptr<Health> BucketLoader::health(int ordinal, const Specialisation& specialisation) {
    const Digest digest = sha256(specialisation.request_document);
    const std::lock_guard lock(mutex_);
    if (health_.size() >= next_forget_) {
        forget_unused();
    }
    std::shared_ptr<Health>& health = health_[{ordinal, digest}];
    if (health == nullptr) {
        health = std::make_shared<Health>();
    }
    return health;
}

void BucketLoader::forget_unused() {
    std::erase_if(health_,
                  [](const auto& entry) { return entry.second.use_count() == 1 && !entry.second->disabled; });
    next_forget_ = std::max<std::size_t>(256, 2 * health_.size());
}

bool BucketLoader::is_disabled(int ordinal, const Specialisation& specialisation) {
    if (health(ordinal, specialisation)->disabled) {
        return true;
    }
    const Digest digest = sha256(specialisation.request_document);
    const std::lock_guard lock(mutex_);
    return not_to_be_built_.contains(digest);
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

Result<LoadedBucketPtr> BucketLoader::load(device::Device& device, const Artifact& artifact) {
    const Specialisation& specialisation = artifact.specialisation;
    const Result<compile::CodeObject> code_object = compile::read_code_object(artifact.code_object);
    if (!code_object) {
        return fail(ErrorCode::load_failed, Stage::load,
                    fmt::format("{}: {}", specialisation.kernel_name, code_object.error().message));
    }
    if (Result<void> checked = check_kernel_abi(specialisation, *code_object); !checked) {
        return fail(checked);
    }
    Result<std::unique_ptr<device::Module>> module = device.load(artifact.code_object);
    ++loads_;
    if (!module) {
        return fail(module.error().code, module.error().stage,
                    fmt::format("{}: {}", specialisation.kernel_name, module.error().message));
    }
    std::vector<LoadedKernel> kernels;
    for (const operators::KernelLaunch& kernel : specialisation.kernels) {
        const Result<device::Function> function = (*module)->function(kernel.symbol);
        if (!function) {
            return tl::unexpected<Error>(function.error());
        }
        kernels.push_back({*function, kernel.shape, kernel.grid_x});
    }
    const int ordinal = device.info().ordinal;
    log::event(
        log::Level::info, "load",
        {{"kernel", specialisation.kernel_name}, {"device", ordinal}, {"source", to_text(artifact.source)}});
    return std::make_unique<const LoadedBucket>(
        LoadedBucket{std::move(kernels), health(ordinal, specialisation), *std::move(module), artifact.source,
                     over_budget(specialisation, *code_object)});
}

Answer<LoadedBucketPtr> BucketLoader::obtain(device::Device& device, const Specialisation& specialisation) {
    const int ordinal = device.info().ordinal;
    if (is_disabled(ordinal, specialisation)) {
        return tl::unexpected(disabled(specialisation));
    }
    Result<ArtifactPtr> artifact = builder_->obtain(specialisation);
    Result<LoadedBucketPtr> bucket =
        artifact ? load(device, **artifact) : Result<LoadedBucketPtr>(fail(artifact));
    if (!bucket) {
        return tl::unexpected(refuse(ordinal, specialisation, std::move(bucket.error())));
    }
    return *std::move(bucket);
}

}  // namespace kiln::service
