#include "runtime/tables/loader.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <system_error>
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

// What a layer holds once: operator, problem, open fields, target with cu_num. The value is where the row
// stands.
using Identity = std::tuple<std::string, Problem, std::string, std::string>;
using Identities = std::map<Identity, std::string>;

struct Faults {
    std::vector<Fault> faults;
    std::vector<Fault> warnings;
};

bool is_inside(const std::string& pointer, const std::string& outer) {
    return pointer.starts_with(outer) && (pointer.size() == outer.size() || pointer[outer.size()] == '/');
}

bool any_inside(const std::vector<Fault>& faults, const std::string& pointer) {
    return std::ranges::any_of(faults, [&](const Fault& fault) { return is_inside(fault.pointer, pointer); });
}

// The indices of rows that have a fault in them.
std::set<std::size_t> rows_with_faults(const std::vector<Fault>& faults) {
    constexpr std::string_view kRows = "/rows/";
    std::set<std::size_t> indices;
    for (const auto& fault : faults) {
        if (!fault.pointer.starts_with(kRows)) {
            continue;
        }
        const std::string_view rest = std::string_view(fault.pointer).substr(kRows.size());
        std::size_t index = 0;
        if (std::from_chars(rest.data(), rest.data() + rest.size(), index).ec == std::errc()) {
            indices.insert(index);
        }
    }
    return indices;
}

Provenance read_provenance(const Json& value) {
    return {value.at("kind").get<std::string>(), value.value("note", std::string()), value.dump()};
}

// Reads one row, of which the schema holds, and judges what the schema can not say.
class RowReader {
  public:
    RowReader(const PositionedJson& text, std::string source, std::string pointer)
        : text_(text), source_(std::move(source)), pointer_(std::move(pointer)) {}

    Row read(const Json& value, LayerKind layer, const RowCheck& check) {
        Row row;
        row.layer = layer;
        row.operator_name = value.at("operator").get<std::string>();
        row.provenance = read_provenance(value.at("provenance"));
        row.origin = {source_, text_.value_position(pointer_).line};
        read_problem(value.at("problem"), row);
        if (const auto problems = value.find("problems"); problems != value.end()) {
            for (const auto& problem : *problems) {
                row.problems.push_back(read_fields(problem));
            }
        }
        read_target(value.at("target").get<std::string>(), row);
        row.cu_num = optional_number(value, "cu_num");
        read_buckets(value.at("buckets"), row);
        for (auto& fault : check(row)) {
            auto place = pointer_ + fault.pointer;
            (fault.severity == RowFault::Severity::fault ? faults_ : warnings_)
                .push_back(fault.at == RowFault::At::name
                               ? text_.fault_at_name(std::move(place), std::move(fault.expected),
                                                     std::move(fault.found))
                               : text_.fault_at_value(std::move(place), std::move(fault.expected),
                                                      std::move(fault.found)));
        }
        return row;
    }

    // Notes the row in `known`, or says where the other one of the same identity stands.
    void claim(const Row& row, Identities& known) {
        const auto [other, is_new] =
            known.emplace(Identity{row.operator_name, row.problem, to_text(row.open), row.device_text()},
                          row.origin.text());
        if (!is_new) {
            faults_.push_back(text_.fault_at_value(
                pointer_, "one row for an operator, problem and target",
                fmt::format("a second one for {} {}{}{} on {} (the first stands at {})", row.operator_name,
                            to_text(row.problem), row.problem.empty() || row.open.empty() ? "" : " ",
                            to_text(row.open), row.device_text(), other->second)));
        }
    }

    const std::vector<Fault>& faults() const { return faults_; }
    const std::vector<Fault>& warnings() const { return warnings_; }

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

    // A field that is open is "*" or has ends; the others have a value.
    static void read_problem(const Json& value, Row& row) {
        for (const auto& [name, field] : value.items()) {
            if (field.is_object()) {
                row.open.emplace(name,
                                 FieldRange{optional_number(field, "min"), optional_number(field, "max")});
            } else if (field == "*") {
                row.open.emplace(name, FieldRange());
            } else {
                row.problem.emplace(name, read_field(field));
            }
        }
    }

    static Problem read_fields(const Json& value) {
        Problem problem;
        for (const auto& [name, field] : value.items()) {
            problem.emplace(name, read_field(field));
        }
        return problem;
    }

    static FieldValue read_field(const Json& field) {
        return field.is_string() ? FieldValue(field.get<std::string>())
                                 : FieldValue(field.get<std::int64_t>());
    }

    static std::optional<std::int64_t> optional_number(const Json& object, const char* name) {
        const auto found = object.find(name);
        return found != object.end() ? std::optional(found->get<std::int64_t>()) : std::nullopt;
    }

    void read_buckets(const Json& values, Row& row) {
        for (const auto& value : values) {
            const auto pointer = fmt::format("{}/buckets/{}", pointer_, row.buckets.size());
            Bucket bucket;
            bucket.max_pairs = optional_number(value, "max_pairs");
            const auto max_m = optional_number(value, "max_m");
            if (max_m.has_value() == bucket.max_pairs.has_value()) {
                faults_.push_back(
                    text_.fault_at_value(pointer, "max_m or max_pairs", max_m ? "both" : "neither"));
            }
            bucket.max_m = max_m.value_or(0);
            if (const auto budget = value.find("budget"); budget != value.end()) {
                bucket.budget = {optional_number(*budget, "waves_per_simd"),
                                 optional_number(*budget, "lds_bytes")};
            }
            bucket.template_id = value.at("template").get<std::string>();
            for (const auto& [name, constant] : value.at("constants").items()) {
                bucket.constants.emplace(name, constant.get<std::int64_t>());
            }
            if (!row.buckets.empty()) {
                check_order(pointer, row.buckets.back(), bucket);
            }
            row.buckets.push_back(std::move(bucket));
        }
    }

    // Of two that count the same: how pairs and tokens compare is for the slots to say.
    void check_order(const std::string& pointer, const Bucket& before, const Bucket& bucket) {
        if (before.max_pairs.has_value() != bucket.max_pairs.has_value()) {
            return;
        }
        const auto first = before.max_pairs.value_or(before.max_m);
        const auto second = bucket.max_pairs.value_or(bucket.max_m);
        // Of tokens the same number may stand twice, if the operator takes that.
        if (second < first || (second == first && bucket.max_pairs)) {
            faults_.push_back(text_.fault_at_value(
                pointer + (bucket.max_pairs ? "/max_pairs" : "/max_m"),
                fmt::format("more than the {} of the bucket before", first), fmt::format("{}", second)));
        }
    }

    const PositionedJson& text_;
    const std::string source_;
    const std::string pointer_;
    std::vector<Fault> faults_;
    std::vector<Fault> warnings_;
};

// One text's faults in its order, of a length that a person may read, behind those of the texts before it.
void append(std::vector<Fault> faults, std::vector<Fault>& all) {
    std::ranges::stable_sort(faults, {}, &Fault::position);
    if (faults.size() > Loader::kMaxFaults) {
        auto rest = faults[Loader::kMaxFaults];
        rest.found = fmt::format("{} more faults from here on", faults.size() - Loader::kMaxFaults);
        rest.expected = "none";
        rest.pointer.clear();
        faults.resize(Loader::kMaxFaults);
        faults.push_back(std::move(rest));
    }
    std::ranges::move(faults, std::back_inserter(all));
}

// Reads the texts of one layer, each row through all its judges.
class LayerReader {
  public:
    LayerReader(LayerKind kind, const SchemaCheck& schema, const RowCheck& check)
        : kind_(kind), schema_(schema), check_(check) {}

    void read(const TableText& table, Faults& all) {
        if (table.text.size() > Loader::kMaxBytes) {
            all.faults.push_back({table.name,
                                  {},
                                  {},
                                  fmt::format("at most {} bytes", Loader::kMaxBytes),
                                  fmt::format("{}", table.text.size())});
            return;
        }
        const PositionedJson text(table.name, table.text);
        Faults found{text.faults(), {}};
        if (text.complete()) {
            if (kind_ != LayerKind::shipped) {
                std::ranges::move(schema_.faults_of(text), std::back_inserter(found.faults));
            }
            read_rows(text, table.name, found);
        }
        append(std::move(found.faults), all.faults);
        append(std::move(found.warnings), all.warnings);
    }

    std::vector<Row> take_rows() { return std::move(rows_); }

  private:
    void read_rows(const PositionedJson& text, const std::string& name, Faults& found) {
        const auto* values = text.find("/rows");
        if (values == nullptr || !values->is_array() || any_inside(found.faults, "/schema") ||
            text.find("/schema") == nullptr) {
            return;
        }
        const auto faulty = rows_with_faults(found.faults);
        for (std::size_t i = 0; i < values->size(); ++i) {
            const auto pointer = "/rows" + pointer_step(i);
            if (faulty.contains(i)) {
                continue;
            }
            try {
                read_row(RowReader(text, name, pointer), (*values)[i], found);
            } catch (const Json::exception& error) {
                // A shipped text that does not follow the schema.
                found.faults.push_back(
                    text.fault_at_value(pointer, "a row as the schema describes it", error.what()));
            }
        }
    }

    void read_row(RowReader reader, const Json& value, Faults& found) {
        auto row = reader.read(value, kind_, check_);
        if (reader.faults().empty()) {
            reader.claim(row, known_);
        }
        if (reader.faults().empty()) {
            rows_.push_back(std::move(row));
        }
        std::ranges::copy(reader.faults(), std::back_inserter(found.faults));
        std::ranges::copy(reader.warnings(), std::back_inserter(found.warnings));
    }

    const LayerKind kind_;
    const SchemaCheck& schema_;
    const RowCheck& check_;
    Identities known_;
    std::vector<Row> rows_;
};

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

LoadedTable Loader::load(const std::vector<Layer>& layers, std::optional<RowLayer> below) const {
    Faults found;
    std::vector<RowLayer> rows;
    for (const auto& layer : layers) {
        LayerReader reader(layer.kind, parts_->schema, parts_->check);
        auto& made = rows.emplace_back(RowLayer{layer.kind, layer.place, {}, {}});
        for (const auto& table : layer.texts) {
            made.files.push_back(table.name);
            reader.read(table, found);
        }
        made.rows = reader.take_rows();
    }
    if (below) {
        rows.push_back(*std::move(below));
    }
    return {Table(std::move(rows)), std::move(found.faults), std::move(found.warnings)};
}

}  // namespace kiln::tables
