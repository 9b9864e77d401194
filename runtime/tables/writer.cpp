#include "runtime/tables/writer.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/tables/positioned_json.hpp"

namespace kiln::tables {
namespace {

std::string quoted(const std::string& text) {
    return nlohmann::json(text).dump();
}

template <class Map, class Write>
std::string object(const Map& members, Write write) {
    std::string text;
    for (const auto& [name, value] : members) {
        text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", quoted(name), write(value));
    }
    return "{" + text + "}";
}

std::string number(std::int64_t value) {
    return fmt::format("{}", value);
}

std::string provenance_text(const Provenance& provenance) {
    return object(nlohmann::ordered_json::parse(provenance.document).items(),
                  [](const auto& value) { return value.dump(); });
}

std::string field(const FieldValue& value) {
    const auto* text = std::get_if<std::string>(&value);
    return text != nullptr ? quoted(*text) : number(std::get<std::int64_t>(value));
}

std::string budget_text(const Budget& budget) {
    std::map<std::string, std::int64_t> said;
    if (budget.waves_per_simd) {
        said.emplace("waves_per_simd", *budget.waves_per_simd);
    }
    if (budget.lds_bytes) {
        said.emplace("lds_bytes", *budget.lds_bytes);
    }
    return said.empty() ? std::string() : fmt::format(R"(, "budget": {})", object(said, number));
}

std::string bucket_text(const Bucket& bucket) {
    return fmt::format(R"(        {{"{}": {}, "template": {}, "constants": {}{}}})",
                       bucket.max_pairs ? "max_pairs" : "max_m", bucket.max_pairs.value_or(bucket.max_m),
                       quoted(bucket.template_id), object(bucket.constants, number),
                       budget_text(bucket.budget));
}

}  // namespace

std::string to_row_text(const Row& row) {
    std::string buckets;
    for (const auto& bucket : row.buckets) {
        buckets += fmt::format("{}{}", buckets.empty() ? "" : ",\n", bucket_text(bucket));
    }
    return fmt::format(
        "{{\n"
        "      \"operator\": {},\n"
        "      \"problem\": {},\n"
        "      \"target\": {},\n{}"
        "      \"buckets\": [\n{}\n      ],\n"
        "      \"provenance\": {}\n"
        "    }}",
        quoted(row.operator_name), object(row.problem, field), quoted(row.target.text()),
        row.cu_num ? fmt::format("      \"cu_num\": {},\n", *row.cu_num) : "", buckets,
        provenance_text(row.provenance));
}

std::string to_table_text(const std::vector<Row>& rows) {
    std::string text;
    for (const auto& row : rows) {
        text += fmt::format("{}    {}", text.empty() ? "" : ",\n", to_row_text(row));
    }
    return fmt::format("{{\n  \"schema\": 1,\n  \"rows\": [\n{}\n  ]\n}}\n", text);
}

Result<std::string> with_row(std::string_view text, std::optional<std::size_t> index, const Row& row) {
    const PositionedJson json("", text);
    const auto* rows = json.complete() ? json.find("/rows") : nullptr;
    if (rows == nullptr || !rows->is_array() || (index && *index >= rows->size())) {
        return fail(ErrorCode::bad_input, Stage::table, "expected a shape table with that row, found none");
    }
    std::string changed(text);
    if (index) {
        const auto old = *json.extent("/rows" + pointer_step(*index));
        changed.replace(old.begin, old.end - old.begin, to_row_text(row));
    } else if (rows->empty()) {
        const auto old = *json.extent("/rows");
        changed.replace(old.begin, old.end - old.begin, fmt::format("[\n    {}\n  ]", to_row_text(row)));
    } else {
        const auto last = *json.extent("/rows" + pointer_step(rows->size() - 1));
        changed.insert(last.end, fmt::format(",\n    {}", to_row_text(row)));
    }
    return changed;
}

}  // namespace kiln::tables
