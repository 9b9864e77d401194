// The loader of shape tables: syntax, the published schema, the operators' own judgement.

#include <algorithm>
#include <string>
#include <variant>

#include <nlohmann/json.hpp>

#include "runtime/embedded/embedded.hpp"
#include "runtime/operators/operator.hpp"
#include "runtime/tables/loader.hpp"
#include "tests/fuzz/target.hpp"

namespace kiln::fuzz {
namespace {

using nlohmann::json;
using tables::Row;

const tables::Loader& loader() {
    static const auto made = [] {
        const auto* schema = embedded::find(embedded::shape_files(), "schema/shape_table.schema.json");
        KILN_FUZZ_PROMISE(schema != nullptr);
        auto created = tables::Loader::create(schema->text, operators::check_row);
        KILN_FUZZ_PROMISE(created);
        return std::move(*created);
    }();
    return *made;
}

tables::LoadedTable load(std::string name, std::string text) {
    tables::Layer layer;
    layer.kind = tables::LayerKind::named;
    layer.texts.push_back({std::move(name), std::move(text)});
    std::vector<tables::Layer> layers;
    layers.push_back(std::move(layer));
    return loader().load(layers);
}

json to_json(const tables::Problem& problem) {
    json object = json::object();
    for (const auto& field : problem) {
        std::visit([&](const auto& value) { object[field.first] = value; }, field.second);
    }
    return object;
}

void put(json& object, const char* name, const std::optional<std::int64_t>& value) {
    if (value) {
        object[name] = *value;
    }
}

json to_json(const Row& row) {
    json problem = to_json(row.problem);
    for (const auto& [name, range] : row.open) {
        json& open = problem[name] = json::object();
        put(open, "min", range.min);
        put(open, "max", range.max);
        if (range.is_any()) {
            open = "*";
        }
    }
    json buckets = json::array();
    for (const auto& bucket : row.buckets) {
        json budget = json::object();
        put(budget, "waves_per_simd", bucket.budget.waves_per_simd);
        put(budget, "lds_bytes", bucket.budget.lds_bytes);
        buckets.push_back(
            {{bucket.max_pairs ? "max_pairs" : "max_m", bucket.max_pairs.value_or(bucket.max_m)},
             {"template", bucket.template_id},
             {"constants", bucket.constants},
             {"budget", std::move(budget)}});
    }
    json problems = json::array();
    for (const auto& listed : row.problems) {
        problems.push_back(to_json(listed));
    }
    json object = {{"problems", std::move(problems)}, {"operator", row.operator_name},
                   {"problem", std::move(problem)},   {"target", row.target.text()},
                   {"buckets", std::move(buckets)},   {"provenance", json::parse(row.provenance.document)}};
    put(object, "cu_num", row.cu_num);
    return object;
}

bool same(const Row& a, const Row& b) {
    return a.operator_name == b.operator_name && a.problem == b.problem && a.open == b.open &&
           a.problems == b.problems && a.device_text() == b.device_text() && a.buckets == b.buckets &&
           a.provenance.document == b.provenance.document;
}

void check_faults(const std::vector<tables::Fault>& faults, std::string_view text) {
    const auto lines = static_cast<std::size_t>(std::ranges::count(text, '\n')) + 1;
    KILN_FUZZ_PROMISE(std::ranges::is_sorted(faults, {}, &tables::Fault::position));
    for (const auto& fault : faults) {
        KILN_FUZZ_PROMISE(fault.position.line >= 1 && fault.position.line <= lines);
        KILN_FUZZ_PROMISE(fault.position.column >= 1 && fault.position.column <= text.size() + 1);
        KILN_FUZZ_PROMISE(!fault.text().empty());
    }
}

}  // namespace

bool run(ByteView input) {
    const std::string text(as_text(input));
    const auto loaded = load("input.json", text);
    check_faults(loaded.faults, text);
    // What a row says, written down again, says the same: nothing is lost or read twice in two ways.
    json document = {{"schema", 1}, {"rows", json::array()}};
    const auto rows = loaded.table.rows();
    for (const auto* row : rows) {
        KILN_FUZZ_PROMISE(!row->buckets.empty());
        KILN_FUZZ_PROMISE(
            row->is_general() ||
            loaded.table.find(row->operator_name, row->problem, {row->target, row->cu_num}).row == row);
        document["rows"].push_back(to_json(*row));
    }
    const auto again = load("again.json", document.dump());
    KILN_FUZZ_PROMISE(again.faults.empty());
    const auto rows_again = again.table.rows();
    KILN_FUZZ_PROMISE(
        std::ranges::equal(rows, rows_again, [](const Row* a, const Row* b) { return same(*a, *b); }));
    return loaded.faults.empty();
}

}  // namespace kiln::fuzz
