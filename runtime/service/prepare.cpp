#include <future>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "runtime/service/metadata.hpp"
#include "runtime/service/service.hpp"

namespace kiln::service {

namespace {

using operators::declined;
using operators::failed;
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

// Obtains all at once, so that misses compile in parallel. Answers in the order of `specialisations`.
std::vector<Result<ArtifactPtr>> obtain_all(Builder& builder,
                                            const std::vector<Specialisation>& specialisations) {
    std::vector<std::future<Result<ArtifactPtr>>> rest;
    for (std::size_t i = 1; i < specialisations.size(); ++i) {
        const auto obtain = [&builder, &specialisation = specialisations[i]] {
            return builder.obtain(specialisation);
        };
        try {
            rest.push_back(std::async(std::launch::async, obtain));
        } catch (const std::system_error&) {
            // No thread to be had: this one does it, below.
            rest.push_back(std::async(std::launch::deferred, obtain));
        }
    }
    std::vector<Result<ArtifactPtr>> results;
    results.push_back(builder.obtain(specialisations.front()));
    for (std::future<Result<ArtifactPtr>>& result : rest) {
        results.push_back(result.get());
    }
    return results;
}

}  // namespace

Result<LoadedBucket> Service::load(device::Device& device, const Artifact& artifact) {
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
    Result<device::Function> function = (*module)->function(specialisation.kernel_name);
    if (!function) {
        return fail(function);
    }
    LoadedBucket bucket;
    bucket.max_m = specialisation.bucket.max_m;
    bucket.function = *function;
    bucket.shape =
        specialisation.source_template->launch_shape(specialisation.problem, specialisation.bucket);
    bucket.health = health(device.info().ordinal, specialisation);
    bucket.kernel_name = specialisation.kernel_name;
    bucket.module = *std::move(module);
    bucket.source = artifact.source;
    bucket.template_id = specialisation.bucket.template_id;
    return bucket;
}

Answer<Service::Resolved> Service::resolve(int ordinal, const Operator& op, const Problem& problem) {
    Result<std::shared_ptr<device::Device>> device = this->device(ordinal);
    if (!device) {
        return failed(std::move(device.error()));
    }
    Result<tables::Target> target = tables::parse_target((*device)->info().target);
    if (!target) {
        return failed(std::move(target.error()));
    }
    const Answer<const tables::Row*> row = select(op, problem, *target);
    if (!row) {
        return tl::unexpected<operators::Refusal>(row.error());
    }
    Resolved resolved{*std::move(device), {}};
    for (const tables::Bucket& bucket : (*row)->buckets) {
        Result<Specialisation> specialisation = specialise(**row, bucket);
        if (!specialisation) {
            return failed(std::move(specialisation.error()));
        }
        if (health(ordinal, *specialisation)->disabled) {
            return declined(KILN_DECLINE_DISABLED, Stage::configure,
                            fmt::format("{} failed earlier", specialisation->kernel_name));
        }
        resolved.specialisations.push_back(*std::move(specialisation));
    }
    return resolved;
}

Answer<void> Service::supports(int ordinal, const Operator& op, const Problem& problem) {
    Answer<Resolved> resolved = resolve(ordinal, op, problem);
    return resolved ? Answer<void>() : tl::unexpected<operators::Refusal>(std::move(resolved.error()));
}

Answer<std::shared_ptr<const Plan>> Service::prepare(int ordinal, const Operator& op,
                                                     const Problem& problem) {
    Answer<Resolved> resolved = resolve(ordinal, op, problem);
    if (!resolved) {
        return tl::unexpected<operators::Refusal>(std::move(resolved.error()));
    }
    const auto& [device, specialisations] = *resolved;
    const auto give_up = [&, ordinal](const Specialisation& specialisation, Error error) {
        if (disables(error) && !health(ordinal, specialisation)->disabled.exchange(true)) {
            log::error("{} is disabled: {}", specialisation.kernel_name, error.message);
        }
        return failed(std::move(error));
    };
    std::vector<Result<ArtifactPtr>> artifacts = obtain_all(*builder_, specialisations);
    for (std::size_t i = 0; i < artifacts.size(); ++i) {
        if (artifacts[i]) {
            continue;
        }
        if (const Result<void> able = builder_->probe(specialisations[i], artifacts[i].error()); !able) {
            return declined(KILN_DECLINE_COMPILER, Stage::compile, able.error().message);
        }
        return give_up(specialisations[i], std::move(artifacts[i].error()));
    }
    std::vector<LoadedBucket> buckets;
    for (std::size_t i = 0; i < artifacts.size(); ++i) {
        Result<LoadedBucket> bucket = load(*device, **artifacts[i]);
        if (!bucket) {
            return give_up(specialisations[i], std::move(bucket.error()));
        }
        buckets.push_back(*std::move(bucket));
    }
    return std::make_shared<const Plan>(op, problem, device, std::move(buckets));
}

}  // namespace kiln::service
