#include <future>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/signals_blocked.hpp"
#include "runtime/service/service.hpp"

namespace kiln::service {

namespace {

using operators::failed;
using operators::Refusal;
using operators::Specialisation;

// Obtains all at once, so that misses compile in parallel. Answers in the order of `specialisations`.
std::vector<Result<ArtifactPtr>> obtain_all(Builder& builder,
                                            const std::vector<Specialisation>& specialisations) {
    std::vector<std::future<Result<ArtifactPtr>>> rest;
    for (std::size_t i = 1; i < specialisations.size(); ++i) {
        const auto obtain = [&builder, &specialisation = specialisations[i]] {
            return builder.obtain(specialisation);
        };
        try {
            const SignalsBlocked blocked;
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

template <class T>
Answer<T> Service::noted(const Operator& op, const Problem& problem, Answer<T> answer) {
    if (!answer && answer.error().decline != 0) {
        loader_->ledger()
            .declines_of(label(op, problem))
            ->note(answer.error().decline, answer.error().error.message);
    }
    return answer;
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
    const SnapshotPtr snapshot = this->snapshot();
    const Answer<RowPtr> row = select_in(snapshot, op, problem, *target);
    if (!row) {
        return tl::unexpected<Refusal>(row.error());
    }
    Resolved resolved{*std::move(device), {}, {}};
    for (const tables::Bucket& bucket : (*row)->buckets) {
        Result<Specialisation> specialisation = specialise_with(snapshot->sources, **row, bucket);
        if (!specialisation) {
            return failed(std::move(specialisation.error()));
        }
        if (loader_->is_disabled(ordinal, *specialisation)) {
            resolved.disabled.push_back(resolved.specialisations.size());
        }
        resolved.specialisations.push_back(*std::move(specialisation));
    }
    return resolved;
}

Answer<void> Service::supports(const Operator& op, const Problem& problem) {
    Answer<RowPtr> row = select(op, problem, settings_.target);
    return noted(op, problem, row ? Answer<void>() : tl::unexpected<Refusal>(std::move(row.error())));
}

Answer<void> Service::supports(int ordinal, const Operator& op, const Problem& problem) {
    Answer<Resolved> resolved = resolve(ordinal, op, problem);
    Answer<void> answer;
    if (!resolved) {
        answer = tl::unexpected<Refusal>(std::move(resolved.error()));
    } else if (!resolved->disabled.empty()) {
        answer =
            tl::unexpected(BucketLoader::disabled(resolved->specialisations[resolved->disabled.front()]));
    }
    return noted(op, problem, std::move(answer));
}

Answer<std::shared_ptr<BucketSet>> Service::load_all(Resolved resolved) {
    device::Device& device = *resolved.device;
    const auto give_up = [&](std::size_t i, Error error) {
        return tl::unexpected(
            loader_->refuse(device.info().ordinal, resolved.specialisations[i], std::move(error)));
    };
    std::vector<Result<ArtifactPtr>> artifacts = obtain_all(builder(), resolved.specialisations);
    for (std::size_t i = 0; i < artifacts.size(); ++i) {
        if (!artifacts[i]) {
            return give_up(i, std::move(artifacts[i].error()));
        }
    }
    std::vector<LoadedBucketPtr> loaded;
    for (std::size_t i = 0; i < artifacts.size(); ++i) {
        Result<LoadedBucketPtr> bucket = loader_->load(device, **artifacts[i]);
        if (!bucket) {
            return give_up(i, std::move(bucket.error()));
        }
        loaded.push_back(*std::move(bucket));
    }
    auto set = std::make_shared<BucketSet>(resolved.device, loader_, std::move(resolved.specialisations),
                                           PrepareMode::blocking);
    for (std::size_t i = 0; i < loaded.size(); ++i) {
        set->set_loaded(i, std::move(loaded[i]));
    }
    return set;
}

Answer<std::shared_ptr<const Plan>> Service::make_plan(int ordinal, const Operator& op,
                                                       const Problem& problem, PrepareMode mode) {
    Answer<Resolved> resolved = resolve(ordinal, op, problem);
    if (!resolved) {
        return tl::unexpected<Refusal>(std::move(resolved.error()));
    }
    const std::size_t bearable = mode == PrepareMode::blocking ? 0 : resolved->specialisations.size() - 1;
    if (resolved->disabled.size() > bearable) {
        return tl::unexpected(BucketLoader::disabled(resolved->specialisations[resolved->disabled.front()]));
    }
    const std::shared_ptr<device::Device> device = resolved->device;
    if (mode == PrepareMode::blocking) {
        Answer<std::shared_ptr<BucketSet>> set = load_all(*std::move(resolved));
        if (!set) {
            return tl::unexpected<Refusal>(std::move(set.error()));
        }
        return std::make_shared<const Plan>(op, problem, device, loader_, *std::move(set), nullptr);
    }
    auto set = std::make_shared<BucketSet>(device, loader_, std::move(resolved->specialisations), mode);
    auto plan = std::make_shared<const Plan>(op, problem, device, loader_, std::move(set), background_);
    if (mode == PrepareMode::background) {
        plan->begin();
    }
    return plan;
}

Answer<std::shared_ptr<const Plan>> Service::prepare(int ordinal, const Operator& op, const Problem& problem,
                                                     PrepareMode mode) {
    return noted(op, problem, make_plan(ordinal, op, problem, mode));
}

}  // namespace kiln::service
