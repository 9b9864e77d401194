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
#include "runtime/embedded/embedded.hpp"
#include "runtime/operators/operator.hpp"
#include "runtime/service/kernel_sources.hpp"
#include "runtime/tables/known_target.hpp"
#include "runtime/tables/layers.hpp"

namespace kiln::service {
namespace {

using tables::RowFault;

constexpr std::string_view kSchema = "schema/shape_table.schema.json";
constexpr std::string_view kSchemaFolder = "schema/";

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
    RowJudge(const Settings& settings, const KernelSources& sources)
        : sources_(sources), only_carried_(settings.kernel_path.empty()) {}

    std::vector<RowFault> operator()(tables::Row& row) {
        auto faults = operators::check_row(row);
        if (only_carried_ && row.layer == tables::LayerKind::shipped) {
            return faults;
        }
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
    const bool only_carried_;
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

}  // namespace

tables::Layer shipped_layer() {
    tables::Layer layer{tables::LayerKind::shipped, {}, {}};
    for (const embedded::EmbeddedFile& file : embedded::shape_files()) {
        if (!file.path.starts_with(kSchemaFolder)) {
            layer.texts.push_back({"shapes/" + std::string(file.path), std::string(file.text)});
        }
    }
    return layer;
}

Result<tables::LoadedTable> load_tables(const Settings& settings) {
    return load_tables(settings, KernelSources(settings.kernel_path));
}

Result<tables::LoadedTable> load_tables(const Settings& settings, const KernelSources& sources) {
    const embedded::EmbeddedFile* schema = embedded::find(embedded::shape_files(), kSchema);
    if (schema == nullptr) {
        return fail(ErrorCode::internal, Stage::table,
                    "the library was built without the schema of its shape tables");
    }
    RowJudge judge(settings, sources);
    const Result<std::unique_ptr<tables::Loader>> loader =
        tables::Loader::create(schema->text, [&judge](tables::Row& row) { return judge(row); });
    if (!loader) {
        return tl::unexpected<Error>(loader.error());
    }
    tables::ReadLayers read = tables::read_layers(settings.table_places);
    if (settings.shipped_tables) {
        read.layers.push_back(shipped_layer());
    }
    tables::LoadedTable loaded = (*loader)->load(read.layers);
    loaded.faults.insert(loaded.faults.begin(), std::make_move_iterator(read.faults.begin()),
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
