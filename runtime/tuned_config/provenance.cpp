#include "runtime/tuned_config/provenance.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "runtime/tuned_config/csv.hpp"
#include "runtime/tuned_config/kernel_names.hpp"

namespace kiln::tuned_config {
namespace {

using Json = nlohmann::json;

// A list of texts; nothing where it is anything else.
std::optional<std::vector<std::string>> texts_of(const Json& object, const char* name) {
    const auto list = object.find(name);
    if (list == object.end() || !list->is_array() ||
        !std::ranges::all_of(*list, [](const Json& one) { return one.is_string(); })) {
        return std::nullopt;
    }
    return list->get<std::vector<std::string>>();
}

// The cells that are kept for a bucket's max_m.
std::optional<std::vector<std::string>> cells_of(const Json& provenance, std::int64_t max_m) {
    const auto rows = provenance.find("rows");
    if (rows == provenance.end() || !rows->is_array()) {
        return std::nullopt;
    }
    const auto said = std::ranges::find_if(
        *rows, [&](const Json& one) { return one.is_object() && one.value("max_m", Json()) == max_m; });
    return said == rows->end() ? std::nullopt : texts_of(*said, "cells");
}

bool has(const tables::Row& row, std::string_view field, std::int64_t value) {
    const auto found = row.problem.find(field);
    return found != row.problem.end() && found->second == tables::FieldValue(value);
}

bool says(const FormRow& was, const tables::Row& row, const tables::Bucket& bucket) {
    const auto constants = constants_of({was.kernel1, was.kernel2});
    return constants && *constants == bucket.constants && bucket.template_id == kTemplate &&
           was.token == bucket.max_m && was.target == row.target && was.cu_num == row.cu_num &&
           has(row, "hidden", was.model_dim) && has(row, "intermediate", was.inter_dim) &&
           has(row, "experts", was.expert) && has(row, "slots", was.topk);
}

}  // namespace

std::optional<ImportedRow> imported_row(const tables::Row& row, const tables::Bucket& bucket) {
    if (row.provenance.kind != "imported") {
        return std::nullopt;
    }
    const auto provenance = Json::parse(row.provenance.document);
    const auto columns = texts_of(provenance, "columns");
    const auto cells = cells_of(provenance, bucket.max_m);
    if (!columns || !cells || columns->size() != cells->size()) {
        return std::nullopt;
    }
    // Read as a file is: anyone may have edited it.
    auto form = read_form("provenance", csv_record(*columns) + csv_record(*cells));
    if (!form.faults.empty() || form.rows.size() != 1 || !says(form.rows.front(), row, bucket)) {
        return std::nullopt;
    }
    return ImportedRow{std::move(form.columns), std::move(form.rows.front())};
}

}  // namespace kiln::tuned_config
