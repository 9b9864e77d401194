#include "runtime/service/service.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/cores.hpp"
#include "base/log.hpp"
#include "runtime/operators/demands.hpp"
#include "runtime/service/log_settings.hpp"
#include "runtime/service/tables.hpp"

namespace kiln::service {

namespace {

using operators::declined;

Parts real_parts(const Settings& settings, Parts parts) {
    if (!parts.make_compiler) {
        compile::CompilerConfig config;
        config.worker = settings.worker;
        config.workers = settings.workers;
        config.in_process = settings.compile_in_process;
        parts.make_compiler = [config] { return compile::Compiler::create(config); };
    }
    if (!parts.open_devices) {
        parts.open_devices = [driver = settings.driver] { return device::open_devices(driver); };
    }
    return parts;
}

// What a row says for a problem that it admits, with the snapshot that it belongs to.
Result<RowPtr> row_for(const SnapshotPtr& snapshot, const tables::Row& row, const Problem& problem) {
    if (!row.is_general()) {
        return RowPtr(snapshot, &row);
    }
    Result<tables::Row> exact = operators::row_at(row, problem);
    return exact ? Result<RowPtr>(std::make_shared<const tables::Row>(*std::move(exact))) : fail(exact);
}

// Of an exact row what it says for the problem's demands: the row itself, where that is all of it.
RowPtr row_serving(const Operator& op, const RowPtr& whole, const Problem& problem) {
    tables::Row row = operators::serving(op, *whole, problem);
    const bool is_same = row.problem == whole->problem && row.buckets.size() == whole->buckets.size();
    return is_same ? whole : std::make_shared<const tables::Row>(std::move(row));
}

// The templates of the stages of a bucket; its own, where it is none of ours.
std::vector<std::string> stage_ids(const tables::Row& row, const tables::Bucket& bucket) {
    const Operator* op = operators::find_operator(row.operator_name);
    const operators::Template* known =
        op != nullptr ? op->find_template(bucket.template_id, row.target.processor) : nullptr;
    if (known == nullptr) {
        return {bucket.template_id};
    }
    std::vector<std::string> ids;
    for (const operators::PipelineStage& stage : known->stages(row.problem, bucket)) {
        ids.emplace_back(stage.source->id());
    }
    return ids;
}

// The first of them that has no source for the target.
std::optional<std::string> missing_source(const KernelSources& sources, const tables::Target& target,
                                          const std::vector<std::string>& stages) {
    const auto has_none = [&](const std::string& id) { return !sources.has(id, target); };
    const auto missing = std::ranges::find_if(stages, has_none);
    return missing != stages.end() ? std::optional(*missing) : std::nullopt;
}

// The fields of a filter that tell problems of the tables apart, and those that are demands.
std::pair<Problem, Problem> without_demands(const WarmFilter& filter) {
    std::pair<Problem, Problem> parts{filter.problem, {}};
    if (filter.op != nullptr) {
        for (const operators::Field& field : filter.op->fields()) {
            if (const auto demand = parts.first.find(field.name);
                field.is_demand && demand != parts.first.end()) {
                parts.second.insert(parts.first.extract(demand));
            }
        }
    }
    return parts;
}

// Problems that the tables name, and the one that the filter names where it leaves no field open, each with
// the rows that serve it; of general rows those for that problem.
std::vector<RowPtr> rows_of(const SnapshotPtr& snapshot, const WarmFilter& filter) {
    const tables::Table& table = *snapshot->table;
    const auto [wanted, demands] = without_demands(filter);
    std::vector<RowPtr> result;
    const auto add = [&, &demands = demands](const tables::Row& row, const Problem& problem) {
        if (filter.target && table.find(row.operator_name, problem, *filter.target).row != &row) {
            return;
        }
        Result<RowPtr> exact = row_for(snapshot, row, problem);
        if (!exact) {
            return;
        }
        if (demands.empty()) {
            result.push_back(*std::move(exact));
            return;
        }
        Problem demanding = problem;
        for (const auto& [name, value] : demands) {
            demanding.insert_or_assign(name, value);
        }
        result.push_back(row_serving(*filter.op, *exact, demanding));
    };
    std::optional<Problem> asked;
    if (filter.op != nullptr) {
        if (Result<Problem> whole = operators::complete(*filter.op, wanted);
            whole && filter.op->judge(*whole)) {
            asked = *std::move(whole);
        }
    }
    for (const auto& [row, problem] : table.named_problems()) {
        if ((filter.op == nullptr || row->operator_name == filter.op->name()) &&
            operators::matches(wanted, *problem)) {
            add(*row, *problem);
            if (asked == *problem) {
                asked.reset();
            }
        }
    }
    if (asked) {
        for (const tables::Row* row : table.rows_in_force(filter.op->name(), *asked)) {
            add(*row, *asked);
        }
    }
    return result;
}

}  // namespace

Result<std::unique_ptr<Service>> Service::open(const Overrides& overrides) {
    Result<Settings> settings = read_settings(overrides, process_environment());
    return settings ? open(*std::move(settings)) : Result<std::unique_ptr<Service>>(fail(settings));
}

Result<std::unique_ptr<Service>> Service::open(Settings settings, Parts parts) {
    adopt_log(settings);
    for (const std::string& warning : settings.warnings) {
        log::warning("{}", warning);
    }
    Result<SnapshotPtr> snapshot = open_snapshot(settings, nullptr);
    if (!snapshot) {
        return fail(snapshot);
    }
    parts = real_parts(settings, std::move(parts));
    return std::unique_ptr<Service>(new Service(std::move(settings), *std::move(snapshot), std::move(parts)));
}

Service::Service(Settings settings, SnapshotPtr snapshot, Parts parts)
    : settings_(std::move(settings)),
      parts_(std::move(parts)),
      loader_(std::make_shared<BucketLoader>(std::make_unique<Builder>(open_cache(settings_, Create::yes),
                                                                       parts_.make_compiler, settings_.jit))),
      background_(
          std::make_shared<Background>(settings_.workers > 0 ? settings_.workers : cores_of_this_process(),
                                       [loader = loader_] { loader->builder().stop(); })),
      snapshot_(std::move(snapshot)) {}

Service::~Service() = default;

Statistics Service::statistics() const {
    return {loader_->builder().statistics(), loader_->num_loads(), loader_->ledger().declines().total(),
            loader_->ledger().num_disabled(), reloads_.load()};
}

std::uint64_t Service::num_declines(int decline) const {
    return loader_->ledger().declines().of(decline);
}

SnapshotPtr Service::snapshot() const {
    const std::lock_guard lock(snapshot_mutex_);
    return snapshot_;
}

Result<std::vector<std::shared_ptr<device::Device>>> Service::devices() {
    const std::lock_guard lock(device_mutex_);
    if (!devices_) {
        devices_ = parts_.open_devices();
    }
    return *devices_;
}

Result<std::shared_ptr<device::Device>> Service::device(int ordinal) {
    Result<std::vector<std::shared_ptr<device::Device>>> all = devices();
    if (!all) {
        return fail(all);
    }
    for (const std::shared_ptr<device::Device>& candidate : *all) {
        if (candidate->info().ordinal == ordinal) {
            return candidate;
        }
    }
    return fail(ErrorCode::not_found, Stage::device,
                fmt::format("expected a device below {}, found {}", all->size(), ordinal));
}

bool Service::is_switched_off(std::string_view name) const {
    return std::ranges::find(settings_.disable, name) != settings_.disable.end();
}

std::optional<std::string> Service::switched_off(const tables::Bucket& bucket,
                                                 const std::vector<std::string>& stages) const {
    const auto off = std::ranges::find_if(stages, [this](const auto& name) { return is_switched_off(name); });
    if (off != stages.end()) {
        return *off;
    }
    return is_switched_off(bucket.template_id) ? std::optional(bucket.template_id) : std::nullopt;
}

Answer<RowPtr> Service::select(const Operator& op, const Problem& problem,
                               const tables::DeviceTraits& target) const {
    return select_in(snapshot(), op, problem, target);
}

Answer<RowPtr> Service::select_in(const SnapshotPtr& snapshot, const Operator& op, const Problem& problem,
                                  const tables::DeviceTraits& target) const {
    if (is_switched_off(op.name())) {
        return declined(KILN_DECLINE_SWITCHED_OFF, Stage::configure,
                        fmt::format("{} is switched off", op.name()));
    }
    if (Answer<void> judged = op.judge(problem); !judged) {
        return tl::unexpected<operators::Refusal>(std::move(judged.error()));
    }
    const Problem asked = operators::without_demands(op, problem);
    tables::Lookup lookup = snapshot->table->find(op.name(), asked, target);
    switch (lookup.outcome) {
        case tables::Lookup::Outcome::unknown_problem:
            return declined(KILN_DECLINE_SHAPE, Stage::table, std::move(lookup.detail));
        case tables::Lookup::Outcome::other_processor:
            return declined(KILN_DECLINE_PROCESSOR, Stage::table, std::move(lookup.detail));
        case tables::Lookup::Outcome::other_features:
            return declined(KILN_DECLINE_TARGET_FEATURE, Stage::table, std::move(lookup.detail));
        case tables::Lookup::Outcome::found:
            break;
    }
    const Result<RowPtr> whole = row_for(snapshot, *lookup.row, asked);
    if (!whole) {
        return declined(KILN_DECLINE_SHAPE, Stage::table, whole.error().message);
    }
    const RowPtr row = row_serving(op, *whole, problem);
    if (row->buckets.empty()) {
        return declined(KILN_DECLINE_NOT_DETERMINISTIC, Stage::table,
                        fmt::format("{}: {}: {}", label(op, problem), lookup.row->origin.text(),
                                    *operators::why_passed_over(op, problem, lookup.row->target,
                                                                (*whole)->buckets.front())));
    }
    for (const tables::Bucket& bucket : row->buckets) {
        const std::vector<std::string> stages = stage_ids(*row, bucket);
        if (const auto off = switched_off(bucket, stages)) {
            return declined(KILN_DECLINE_SWITCHED_OFF, Stage::configure,
                            fmt::format("{}: {} is switched off", label(op, problem), *off));
        }
        if (const auto missing = missing_source(snapshot->sources, row->target, stages)) {
            return declined(
                KILN_DECLINE_PROCESSOR, Stage::table,
                fmt::format("{}: {} has a row for {}, but {} has no source for it", label(op, problem),
                            lookup.row->origin.text(), lookup.row->device_text(), *missing));
        }
    }
    return row;
}

Result<operators::Pipeline> Service::pipeline(const tables::Row& row, const tables::Bucket& bucket) const {
    return pipeline_with(snapshot()->sources, row, bucket);
}

Result<operators::Pipeline> pipeline_with(const KernelSources& sources, const tables::Row& row,
                                          const tables::Bucket& bucket) {
    const Operator* op = operators::find_operator(row.operator_name);
    if (op == nullptr) {
        return fail(ErrorCode::not_found, Stage::table, fmt::format("{} is no operator", row.operator_name));
    }
    const operators::TemplateReader read = [&sources](std::string_view id, const tables::Target& target) {
        return sources.read(id, target);
    };
    return operators::make_pipeline(*op, row.problem, bucket, row.target, read);
}

Explanation Service::explain(const Operator& op, const Problem& problem, std::int64_t m,
                             const tables::DeviceTraits& target) {
    Explanation explanation;
    const auto refuse = [&explanation](operators::Refusal refusal) {
        explanation.refusal = std::move(refusal);
        return explanation;
    };
    const SnapshotPtr snapshot = this->snapshot();
    Answer<RowPtr> row = select_in(snapshot, op, problem, target);
    if (!row) {
        return refuse(row.error());
    }
    const Problem asked = operators::without_demands(op, problem);
    explanation.found = RowPtr(snapshot, snapshot->table->find(op.name(), asked, target).row);
    explanation.shadowed = snapshot->table->shadowed(*explanation.found, asked, target);
    explanation.row = row_for(snapshot, *explanation.found, asked).value_or(*row);
    const std::vector<tables::Bucket>& whole = explanation.row->buckets;
    for (std::size_t i = 0; i < whole.size() && explanation.bucket == nullptr && m >= 1; ++i) {
        if (whole[i].max_m < m) {
            continue;
        }
        if (auto why = operators::why_passed_over(op, problem, explanation.row->target, whole[i])) {
            explanation.passed_over.push_back({i, *std::move(why)});
        } else {
            explanation.bucket = &whole[i];
            explanation.bucket_index = i;
        }
    }
    if (explanation.bucket == nullptr) {
        return refuse({m < 1 ? KILN_DECLINE_M_NEGATIVE : KILN_DECLINE_M_TOO_LARGE,
                       {ErrorCode::invalid_argument, Stage::launch,
                        fmt::format("expected M from 1 to {}, found {}", (*row)->buckets.back().max_m, m)}});
    }
    Result<operators::Pipeline> pipeline = pipeline_with(snapshot->sources, **row, *explanation.bucket);
    if (!pipeline) {
        return refuse({0, pipeline.error()});
    }
    for (const auto& [specialisation, offset] : pipeline->stages) {
        Explanation::Kept& kept = explanation.kept.emplace_back();
        Result<cache::Key> key = builder().key(specialisation);
        if (key) {
            kept.key = *std::move(key);
        } else {
            kept.key_missing = key.error().message;
        }
        const Result<std::optional<ArtifactPtr>> found = builder().find(specialisation);
        kept.cached = found && found->has_value();
    }
    explanation.pipeline = *std::move(pipeline);
    return explanation;
}

std::vector<RowPtr> Service::rows(const WarmFilter& filter) const {
    return rows_of(snapshot(), filter);
}

bool Service::is_switched_off(const tables::Row& row) const {
    const Operator* op = operators::find_operator(row.operator_name);
    return op != nullptr && (is_switched_off(op->name()) ||
                             std::ranges::any_of(row.buckets, [&](const tables::Bucket& bucket) {
                                 return switched_off(bucket, stage_ids(row, bucket)).has_value();
                             }));
}

std::vector<operators::Specialisation> Service::matching(const WarmFilter& filter, std::vector<Error>& errors,
                                                         std::set<std::string>* off) const {
    const SnapshotPtr snapshot = this->snapshot();
    std::vector<operators::Specialisation> result;
    std::set<std::string> seen;
    for (const RowPtr& row : rows_of(snapshot, filter)) {
        const bool is_off = off != nullptr && is_switched_off(*row);
        for (const tables::Bucket& bucket : row->buckets) {
            if (!filter.target && missing_source(snapshot->sources, row->target, stage_ids(*row, bucket))) {
                continue;  // loading the table has warned of it
            }
            Result<operators::Pipeline> pipeline = pipeline_with(snapshot->sources, *row, bucket);
            if (!pipeline) {
                errors.push_back(std::move(pipeline.error()));
                continue;
            }
            for (operators::SpecialisedStage& stage : pipeline->stages) {
                const std::string& request = stage.specialisation.request_document;
                if (is_off) {
                    off->insert(request);
                } else if (seen.insert(request).second) {
                    result.push_back(std::move(stage.specialisation));
                }
            }
        }
    }
    return result;
}

}  // namespace kiln::service
