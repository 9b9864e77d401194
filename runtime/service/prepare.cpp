#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "runtime/service/service.hpp"

namespace kiln::service {

namespace {

using operators::failed;
using operators::Pipeline;
using operators::Refusal;
using operators::SpecialisedStage;

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
    const Answer<RowPtr> row =
        select_in(snapshot, op, problem, {*std::move(target), (*device)->info().num_compute_units});
    if (!row) {
        return tl::unexpected<Refusal>(row.error());
    }
    Resolved resolved{*std::move(device), {}, {}};
    for (const tables::Bucket& bucket : (*row)->buckets) {
        Result<Pipeline> pipeline = pipeline_with(snapshot->sources, **row, bucket);
        if (!pipeline) {
            return failed(std::move(pipeline.error()));
        }
        if (std::optional<Refusal> disabled = loader_->disabled(ordinal, *pipeline)) {
            resolved.disabled.push_back(*std::move(disabled));
        }
        resolved.pipelines.push_back(*std::move(pipeline));
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
        answer = tl::unexpected(std::move(resolved->disabled.front()));
    }
    return noted(op, problem, std::move(answer));
}

Answer<std::shared_ptr<BucketSet>> Service::load_all(Resolved resolved) {
    BucketLoader::Wanted wanted;
    for (const Pipeline& pipeline : resolved.pipelines) {
        for (const SpecialisedStage& stage : pipeline.stages) {
            wanted.push_back(&stage.specialisation);
        }
    }
    const std::vector<Result<ArtifactPtr>> artifacts = loader_->obtain_artifacts(wanted);
    std::vector<LoadedBucketPtr> loaded(resolved.pipelines.size());
    const auto load = [&](bool only_failed) -> Answer<void> {
        std::span<const Result<ArtifactPtr>> rest = artifacts;
        for (std::size_t i = 0; i < loaded.size(); ++i) {
            const auto of_bucket = rest.first(resolved.pipelines[i].stages.size());
            rest = rest.subspan(of_bucket.size());
            const bool failed = !std::ranges::all_of(of_bucket, &Result<ArtifactPtr>::has_value);
            if (only_failed && !failed) {
                continue;
            }
            Answer<LoadedBucketPtr> bucket =
                loader_->load(*resolved.device, resolved.pipelines[i], of_bucket);
            if (!bucket) {
                return tl::unexpected<Refusal>(std::move(bucket.error()));
            }
            loaded[i] = *std::move(bucket);
        }
        return {};
    };
    // Nothing is loaded for a plan that there will not be.
    for (const bool only_failed : {true, false}) {
        if (Answer<void> done = load(only_failed); !done) {
            return tl::unexpected<Refusal>(std::move(done.error()));
        }
    }
    auto set = std::make_shared<BucketSet>(resolved.device, loader_, std::move(resolved.pipelines),
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
    const std::size_t bearable = mode == PrepareMode::blocking ? 0 : resolved->pipelines.size() - 1;
    if (resolved->disabled.size() > bearable) {
        return tl::unexpected(std::move(resolved->disabled.front()));
    }
    const std::shared_ptr<device::Device> device = resolved->device;
    if (mode == PrepareMode::blocking) {
        Answer<std::shared_ptr<BucketSet>> set = load_all(*std::move(resolved));
        if (!set) {
            return tl::unexpected<Refusal>(std::move(set.error()));
        }
        return std::make_shared<const Plan>(op, problem, device, loader_, *std::move(set), nullptr);
    }
    auto set = std::make_shared<BucketSet>(device, loader_, std::move(resolved->pipelines), mode);
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
