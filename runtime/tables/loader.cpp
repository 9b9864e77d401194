#include "runtime/tables/loader.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "runtime/tables/positioned_json.hpp"
#include "runtime/tables/schema_check.hpp"

namespace kiln::tables {

using Json = nlohmann::json;

struct Loader::Parts {
    SchemaCheck schema;
    RowCheck check;
};

namespace {

// What a layer holds once: operator, problem, target. The value is where the row stands.
using Identity = std::tuple<std::string, Problem, std::string>;
using Identities = std::map<Identity, std::string>;

bool is_inside(const std::string& pointer, const std::string& outer) {
    return pointer.starts_with(outer) && (pointer.size() == outer.size() || pointer[outer.size()] == '/');
}

bool any_inside(const std::vector<Fault>& faults, const std::string& pointer) {
    return std::ranges::any_of(faults, [&](const Fault& fault) { return is_inside(fault.pointer, pointer); });
}

Provenance read_provenance(const Json& value) {
    return {value.at("kind").get<std::string>(), value.value("note", std::string()), value.dump()};
}

// Reads one row, of which the schema holds, and judges what the schema can not say.
class RowReader {
  public:
    RowReader(const PositionedJson& text, std::string source, std::string pointer)
        : text_(text), source_(std::move(source)), pointer_(std::move(pointer)) {}

    Row read(const Json& value, const RowCheck& check) {
        Row row;
        row.operator_name = value.at("operator").get<std::string>();
        row.provenance = read_provenance(value.at("provenance"));
        row.origin = fmt::format("{}:{}", source_, text_.value_position(pointer_).line);
        for (const auto& [name, field] : value.at("problem").items()) {
            row.problem.emplace(name, field.is_string() ? FieldValue(field.get<std::string>())
                                                        : FieldValue(field.get<std::int64_t>()));
        }
        read_target(value.at("target").get<std::string>(), row);
        read_buckets(value.at("buckets"), row);
        for (auto& fault : check(row)) {
            auto place = pointer_ + fault.pointer;
            faults_.push_back(
                fault.at == RowFault::At::name
                    ? text_.fault_at_name(std::move(place), std::move(fault.expected), std::move(fault.found))
                    : text_.fault_at_value(std::move(place), std::move(fault.expected),
                                           std::move(fault.found)));
        }
        return row;
    }

    // Notes the row in `known`, or says where the other one of the same identity stands.
    void claim(const Row& row, Identities& known) {
        const auto [other, is_new] =
            known.emplace(Identity{row.operator_name, row.problem, row.target.text()}, row.origin);
        if (!is_new) {
            faults_.push_back(text_.fault_at_value(
                pointer_, "one row for an operator, problem and target",
                fmt::format("a second one for {} {} on {} (the first stands at {})", row.operator_name,
                            to_text(row.problem), row.target.text(), other->second)));
        }
    }

    const std::vector<Fault>& faults() const { return faults_; }

  private:
    void read_target(const std::string& value, Row& row) {
        auto target = parse_target(value);
        if (target) {
            row.target = std::move(*target);
        } else {
            faults_.push_back(text_.fault_at_value(
                pointer_ + "/target", "a processor and the features it pins, such as gfx950 or gfx950:xnack-",
                fmt::format("\"{}\"", value)));
        }
    }

    void read_buckets(const Json& values, Row& row) {
        for (const auto& value : values) {
            Bucket bucket;
            bucket.max_m = value.at("max_m").get<std::int64_t>();
            bucket.template_id = value.at("template").get<std::string>();
            for (const auto& [name, constant] : value.at("constants").items()) {
                bucket.constants.emplace(name, constant.get<std::int64_t>());
            }
            if (!row.buckets.empty() && bucket.max_m <= row.buckets.back().max_m) {
                faults_.push_back(text_.fault_at_value(
                    fmt::format("{}/buckets/{}/max_m", pointer_, row.buckets.size()),
                    fmt::format("more than the {} of the bucket before", row.buckets.back().max_m),
                    fmt::format("{}", bucket.max_m)));
            }
            row.buckets.push_back(std::move(bucket));
        }
    }

    const PositionedJson& text_;
    const std::string source_;
    const std::string pointer_;
    std::vector<Fault> faults_;
};

// The rows of one text; its faults are added to `all_faults` in the order of the text.
void load_text(const TableText& table, const SchemaCheck& schema, const RowCheck& check, Identities& known,
               std::vector<Row>& rows, std::vector<Fault>& all_faults) {
    const PositionedJson text(table.name, table.text);
    auto faults = text.faults();
    if (text.complete()) {
        const auto against_schema = schema.faults_of(text);
        faults.insert(faults.end(), against_schema.begin(), against_schema.end());
        const auto* values = text.find("/rows");
        const bool readable = values != nullptr && values->is_array() && !any_inside(faults, "/schema") &&
                              text.find("/schema") != nullptr;
        for (std::size_t i = 0; readable && i < values->size(); ++i) {
            const auto pointer = "/rows" + pointer_step(i);
            if (any_inside(faults, pointer)) {
                continue;
            }
            RowReader reader(text, table.name, pointer);
            auto row = reader.read((*values)[i], check);
            if (reader.faults().empty()) {
                reader.claim(row, known);
            }
            if (reader.faults().empty()) {
                rows.push_back(std::move(row));
            }
            faults.insert(faults.end(), reader.faults().begin(), reader.faults().end());
        }
    }
    std::ranges::stable_sort(faults, {}, &Fault::position);
    std::ranges::move(faults, std::back_inserter(all_faults));
}

}  // namespace

Loader::Loader(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Loader::~Loader() = default;

Result<std::unique_ptr<Loader>> Loader::create(std::string_view schema, RowCheck check) {
    auto parsed = SchemaCheck::create(schema);
    if (!parsed) {
        return fail(parsed);
    }
    return std::unique_ptr<Loader>(
        new Loader(std::make_unique<const Parts>(Parts{std::move(*parsed), std::move(check)})));
}

LoadedTable Loader::load(const std::vector<Layer>& layers) const {
    std::vector<Fault> faults;
    std::vector<std::vector<Row>> rows;
    for (const auto& layer : layers) {
        Identities known;
        auto& rows_of_layer = rows.emplace_back();
        for (const auto& table : layer) {
            load_text(table, parts_->schema, parts_->check, known, rows_of_layer, faults);
        }
    }
    return {Table(std::move(rows)), std::move(faults)};
}

}  // namespace kiln::tables
