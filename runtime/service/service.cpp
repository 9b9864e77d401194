#include "runtime/service/service.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "runtime/service/metadata.hpp"
#include "runtime/service/tables.hpp"

namespace kiln::service {

namespace {

using operators::declined;

Parts real_parts(const Settings& settings, Parts parts) {
    if (!parts.make_compiler) {
        parts.make_compiler = [config = compile::CompilerConfig{.worker = settings.worker,
                                                                .toolchain_prefix = {},
                                                                .workers = settings.workers}] {
            return compile::Compiler::create(config);
        };
    }
    if (!parts.open_devices) {
        parts.open_devices = [driver = settings.driver] { return device::open_devices(driver); };
    }
    return parts;
}

std::string label(const Operator& op, const Problem& problem) {
    return fmt::format("{} {}", op.name(), operators::format_problem(op, problem));
}

}  // namespace

Result<std::unique_ptr<Service>> Service::open(const Overrides& overrides) {
    Result<Settings> settings = read_settings(overrides, process_environment());
    return settings ? open(*std::move(settings)) : Result<std::unique_ptr<Service>>(fail(settings));
}

Result<std::unique_ptr<Service>> Service::open(Settings settings, Parts parts) {
    log::set_level(settings.log_level);
    for (const std::string& warning : settings.warnings) {
        log::warning("{}", warning);
    }
    Result<std::shared_ptr<const tables::Table>> table = open_table(settings);
    if (!table) {
        return fail(table);
    }
    parts = real_parts(settings, std::move(parts));
    return std::unique_ptr<Service>(new Service(std::move(settings), *std::move(table), std::move(parts)));
}

Service::Service(Settings settings, std::shared_ptr<const tables::Table> table, Parts parts)
    : settings_(std::move(settings)),
      table_(std::move(table)),
      parts_(std::move(parts)),
      sources_(settings_.kernel_path),
      builder_(std::make_unique<Builder>(open_cache(settings_, Create::yes), parts_.make_compiler,
                                         settings_.jit)) {}

Service::~Service() = default;

Statistics Service::statistics() const {
    return {builder_->statistics(), loads_.load()};
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

Answer<const tables::Row*> Service::select(const Operator& op, const Problem& problem,
                                           const tables::Target& target) const {
    const auto switched_off = [this](std::string_view name) {
        return std::find(settings_.disable.begin(), settings_.disable.end(), name) != settings_.disable.end();
    };
    if (switched_off(op.name())) {
        return declined(KILN_DECLINE_SWITCHED_OFF, Stage::configure,
                        fmt::format("{} is switched off", op.name()));
    }
    if (Answer<void> judged = op.judge(problem); !judged) {
        return tl::unexpected<operators::Refusal>(std::move(judged.error()));
    }
    tables::Lookup lookup = table_->find(op.name(), problem, target);
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
    for (const tables::Bucket& bucket : lookup.row->buckets) {
        if (switched_off(bucket.template_id)) {
            return declined(KILN_DECLINE_SWITCHED_OFF, Stage::configure,
                            fmt::format("{}: {} is switched off", label(op, problem), bucket.template_id));
        }
        if (!sources_.has(bucket.template_id, lookup.row->target)) {
            return declined(
                KILN_DECLINE_PROCESSOR, Stage::table,
                fmt::format("{}: {} has a row for {}, but {} has no source for it", label(op, problem),
                            lookup.row->origin.text(), lookup.row->target.text(), bucket.template_id));
        }
    }
    return lookup.row;
}

Result<operators::Specialisation> Service::specialise(const tables::Row& row,
                                                      const tables::Bucket& bucket) const {
    const Operator* op = operators::find_operator(row.operator_name);
    if (op == nullptr) {
        return fail(ErrorCode::not_found, Stage::table, fmt::format("{} is no operator", row.operator_name));
    }
    const auto source = sources_.read(bucket.template_id, row.target);
    if (!source) {
        return tl::unexpected<Error>(source.error());
    }
    return operators::specialise(*op, row.problem, bucket, row.target, **source);
}

Explanation Service::explain(const Operator& op, const Problem& problem, std::int64_t m,
                             const tables::Target& target) {
    Explanation explanation;
    const auto refuse = [&explanation](operators::Refusal refusal) {
        explanation.refusal = std::move(refusal);
        return explanation;
    };
    Answer<const tables::Row*> row = select(op, problem, target);
    if (!row) {
        return refuse(row.error());
    }
    explanation.row = *row;
    explanation.shadowed = table_->shadowed(**row, target);
    explanation.bucket = (*row)->bucket_for(m);
    if (explanation.bucket == nullptr) {
        return refuse({m < 1 ? KILN_DECLINE_M_NEGATIVE : KILN_DECLINE_M_TOO_LARGE,
                       {ErrorCode::invalid_argument, Stage::launch,
                        fmt::format("expected M from 1 to {}, found {}", (*row)->buckets.back().max_m, m)}});
    }
    explanation.bucket_index = static_cast<std::size_t>(explanation.bucket - (*row)->buckets.data());
    Result<operators::Specialisation> specialisation = specialise(**row, *explanation.bucket);
    if (!specialisation) {
        return refuse({0, specialisation.error()});
    }
    explanation.specialisation = *std::move(specialisation);
    Result<cache::Key> key = builder_->key(*explanation.specialisation);
    if (key) {
        explanation.key = *std::move(key);
    } else {
        explanation.key_missing = key.error().message;
    }
    const Result<std::optional<ArtifactPtr>> found = builder_->find(*explanation.specialisation);
    explanation.cached = found && found->has_value();
    return explanation;
}

Answer<void> Service::supports(const Operator& op, const Problem& problem) const {
    Answer<const tables::Row*> row = select(op, problem, settings_.target);
    return row ? Answer<void>() : tl::unexpected<operators::Refusal>(std::move(row.error()));
}

std::shared_ptr<Health> Service::health(int ordinal, const operators::Specialisation& specialisation) {
    const std::lock_guard lock(health_mutex_);
    std::shared_ptr<Health>& health = health_[{ordinal, specialisation.request_document}];
    if (health == nullptr) {
        health = std::make_shared<Health>();
    }
    return health;
}

std::vector<const tables::Row*> Service::rows(const WarmFilter& filter) const {
    std::vector<const tables::Row*> result;
    for (const tables::Row* row : table_->rows_in_force()) {
        if ((filter.op != nullptr && row->operator_name != filter.op->name()) ||
            !operators::matches(filter.problem, row->problem)) {
            continue;
        }
        if (!filter.target || table_->find(row->operator_name, row->problem, *filter.target).row == row) {
            result.push_back(row);
        }
    }
    return result;
}

std::vector<operators::Specialisation> Service::matching(const WarmFilter& filter,
                                                         std::vector<Error>& errors) const {
    std::vector<operators::Specialisation> result;
    std::set<std::string> seen;
    for (const tables::Row* row : rows(filter)) {
        for (const tables::Bucket& bucket : row->buckets) {
            if (!filter.target && !sources_.has(bucket.template_id, row->target)) {
                continue;  // loading the table has warned of it
            }
            Result<operators::Specialisation> specialisation = specialise(*row, bucket);
            if (!specialisation) {
                errors.push_back(std::move(specialisation.error()));
            } else if (seen.insert(specialisation->request_document).second) {
                result.push_back(*std::move(specialisation));
            }
        }
    }
    return result;
}

}  // namespace kiln::service
