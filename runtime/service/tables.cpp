#include "runtime/service/tables.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/log.hpp"
#include "runtime/operators/operator.hpp"
#include "runtime/operators/row_review.hpp"
#include "runtime/service/kernel_sources.hpp"
#include "runtime/shipped/shipped.hpp"
#include "runtime/tables/known_target.hpp"
#include "runtime/tables/layers.hpp"

namespace kiln::service {
namespace {

using tables::RowFault;

// The templates with a source that a bucket may need, whatever the problem.
std::vector<std::string_view> part_ids(const tables::Row& row, const tables::Bucket& bucket) {
    const operators::Operator* op = operators::find_operator(row.operator_name);
    const operators::Template* known =
        op != nullptr ? op->find_template(bucket.template_id, row.target.processor) : nullptr;
    if (known == nullptr) {
        return {bucket.template_id};
    }
    std::vector<std::string_view> ids;
    for (const operators::KernelTemplate* part : known->parts()) {
        ids.push_back(part->id());
    }
    return ids;
}

// Whether a row that its operator accepts can be specialised: its target is one that there is, and its
// templates have a source for it. For one pass over the tables: what it learnt of a template holds that long.
class RowJudge {
  public:
    explicit RowJudge(const KernelSources& sources) : sources_(sources) {}

    std::vector<RowFault> operator()(tables::Row& row) {
        const std::vector<tables::Bucket> given = row.buckets;
        auto faults = operators::check_row(row);
        const std::string_view processor = row.target.processor;
        if (!processor.starts_with("gfx") && !processor.starts_with("sm_")) {
            // Of nobody's processors: which constants a template takes there is unknown.
            std::erase_if(faults, [](const auto& fault) { return fault.pointer.starts_with("/buckets/"); });
        }
        if (processor.empty()) {
            return faults;  // its text is no target, which is a fault already
        }
        if (auto fault = tables::judge_target(row.target, has_any_template(row))) {
            faults.push_back({"/target", std::move(fault->expected), std::move(fault->found)});
        }
        if (faults.empty()) {
            faults = operators::review_row(row, given);
            judge_templates(row, faults);
        }
        return faults;
    }

  private:
    struct Known {
        bool exists = false;
        std::string problem;  // why it can not be read, else empty
    };

    [[nodiscard]] bool has_any_template(const tables::Row& row) const {
        const operators::Operator* op = operators::find_operator(row.operator_name);
        return op != nullptr && std::ranges::any_of(op->templates(), [&](const operators::Template* known) {
                   return sources_.has(known->id(), row.target);
               });
    }

    void judge_templates(const tables::Row& row, std::vector<RowFault>& faults) {
        bool served = true;
        for (std::size_t i = 0; i < row.buckets.size(); ++i) {
            for (const std::string_view id : part_ids(row, row.buckets[i])) {
                const auto& known = look_up(id, row.target);
                served = served && known.exists;
                if (!known.problem.empty()) {
                    faults.push_back(
                        {fmt::format("/buckets/{}/template", i),
                         fmt::format("a template that can be specialised for {}", row.target.text()),
                         known.problem});
                }
            }
        }
        if (!served) {
            faults.push_back({"/target", "a processor that this kiln has the row's templates for",
                              fmt::format("{}: the row serves nothing here", row.target.processor),
                              RowFault::At::value, RowFault::Severity::warning});
        }
    }

    const Known& look_up(std::string_view template_id, const tables::Target& target) {
        const auto path = operators::template_path(template_id, target);
        const auto [known, is_new] = known_.emplace(path, Known{});
        if (is_new) {
            known->second.exists = sources_.has(template_id, target);
            if (known->second.exists) {
                const auto source = sources_.read(template_id, target);
                known->second.problem = source ? std::string() : source.error().message;
            }
        }
        return known->second;
    }

    const KernelSources& sources_;
    std::map<std::string, Known> known_;
};

// A row whose template is not there serves nothing and is no fault. But a template that was in use is missed.
std::set<std::string> missing_templates(const Snapshot& before, const tables::Table& table,
                                        const KernelSources& sources) {
    std::set<std::string> missing;
    for (const tables::Row* row : table.rows()) {
        for (const tables::Bucket& bucket : row->buckets) {
            for (const std::string_view id : part_ids(*row, bucket)) {
                if (before.sources.has_read(id, row->target) && !sources.has(id, row->target)) {
                    missing.insert(operators::template_path(id, row->target));
                }
            }
        }
    }
    return missing;
}

// The rows of texts over rows that need no judge.
Result<tables::LoadedTable> judge_layers(const std::vector<tables::Layer>& layers,
                                         std::optional<tables::RowLayer> judged,
                                         const KernelSources& sources) {
    if (layers.empty()) {
        std::vector<tables::RowLayer> rows;
        if (judged) {
            rows.push_back(*std::move(judged));
        }
        return tables::LoadedTable{tables::Table(std::move(rows)), {}, {}};
    }
    Result<std::string_view> schema = shipped::schema();
    if (!schema) {
        return fail(schema);
    }
    RowJudge judge(sources);
    Result<std::unique_ptr<tables::Loader>> loader =
        tables::Loader::create(*schema, [&judge](tables::Row& row) { return judge(row); });
    if (!loader) {
        return fail(loader);
    }
    return (*loader)->load(layers, std::move(judged));
}

}  // namespace

Result<tables::LoadedTable> load_tables(const Settings& settings) {
    return load_tables(settings, KernelSources(settings.kernel_path));
}

Result<tables::LoadedTable> load_tables(const Settings& settings, const KernelSources& sources) {
    tables::ReadLayers read = tables::read_layers(settings.table_places);
    // What the library carries was judged when it was built: with its own templates there is no more to say.
    std::optional<tables::RowLayer> judged;
    if (settings.shipped_tables && settings.kernel_path.empty()) {
        judged = shipped::rows();
    } else if (settings.shipped_tables) {
        read.layers.push_back(shipped::texts());
    }
    Result<tables::LoadedTable> loaded = judge_layers(read.layers, std::move(judged), sources);
    if (!loaded) {
        return loaded;
    }
    loaded->faults.insert(loaded->faults.begin(), std::make_move_iterator(read.faults.begin()),
                          std::make_move_iterator(read.faults.end()));
    return loaded;
}

Result<SnapshotPtr> open_snapshot(const Settings& settings, const Snapshot* before) {
    auto snapshot = std::make_shared<Snapshot>(settings.kernel_path);
    Result<tables::LoadedTable> loaded = load_tables(settings, snapshot->sources);
    if (!loaded) {
        return fail(loaded);
    }
    for (const tables::Fault& warning : loaded->warnings) {
        log::warning("{}", warning.text());
    }
    std::string faults = loaded->faults.empty() ? std::string() : tables::to_error(loaded->faults).message;
    if (before != nullptr) {
        for (const std::string& path : missing_templates(*before, loaded->table, snapshot->sources)) {
            faults += fmt::format("{}{}: expected the template, which was in use, found no such file",
                                  faults.empty() ? "" : "\n", path);
        }
    }
    if (!faults.empty()) {
        return fail(ErrorCode::bad_input, Stage::table, std::move(faults));
    }
    snapshot->table = std::make_shared<const tables::Table>(std::move(loaded->table));
    return SnapshotPtr(std::move(snapshot));
}

}  // namespace kiln::service
