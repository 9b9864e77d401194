#include "runtime/tuned_config/export.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/operators/operator.hpp"
#include "runtime/tuned_config/csv.hpp"
#include "runtime/tuned_config/form.hpp"
#include "runtime/tuned_config/kernel_names.hpp"
#include "runtime/tuned_config/provenance.hpp"

namespace kiln::tuned_config {
namespace {

using Json = nlohmann::json;
using Record = std::map<std::string, std::string, std::less<>>;  // cells by column

// The column of each field of the problem that has one.
constexpr std::pair<std::string_view, std::string_view> kFields[] = {
    {"hidden", "model_dim"}, {"intermediate", "inter_dim"}, {"experts", "expert"}, {"slots", "topk"}};

// Why the form has no words for the row's problem or device; empty where it has.
std::string why_no_key(const operators::Operator& op, const tables::Row& row) {
    if (!row.target.features.empty()) {
        return fmt::format("the form's gfx knows no features, found {}", row.target.text());
    }
    for (const auto& [name, value] : operators::essential(op, row.problem)) {
        const bool has_column =
            std::ranges::any_of(kFields, [&n = name](const auto& known) { return known.first == n; });
        if (!has_column && !(name == "weights" && value == tables::FieldValue("mxfp4"))) {
            return fmt::format("the form has no words for {}",
                               tables::to_text(tables::Problem{{name, value}}));
        }
    }
    return {};
}

Record key_of(const tables::Row& row, std::optional<std::int64_t> cu_num) {
    Record record = {{"gfx", row.target.processor},
                     {"act_type", "ActivationType.Silu"},
                     {"dtype", "torch.bfloat16"},
                     {"q_dtype_a", "torch.float4_e2m1fn_x2"},
                     {"q_dtype_w", "torch.float4_e2m1fn_x2"},
                     {"q_type", "QuantType.per_1x32"},
                     {"use_g1u1", "1"},
                     {"doweight_stage1", "0"}};
    if (const auto units = row.cu_num ? row.cu_num : cu_num) {
        record.emplace("cu_num", fmt::format("{}", *units));
    }
    for (const auto& [field, column] : kFields) {
        record.emplace(column, fmt::format("{}", std::get<std::int64_t>(row.problem.find(field)->second)));
    }
    return record;
}

// The time that a tune measured at M of a bucket with these constants.
std::optional<double> measured_us(const Json& provenance, const tables::Bucket& bucket, std::int64_t m) {
    const auto tuned = provenance.find("tuned");
    if (provenance["kind"] != "measured" || tuned == provenance.end() || !tuned->is_array()) {
        return std::nullopt;
    }
    const auto found = std::ranges::find_if(*tuned, [&](const Json& one) {
        const auto of = one.is_object() ? one.value("bucket", Json::object()) : Json::object();
        return of.value("template", Json()) == bucket.template_id &&
               of.value("constants", Json()) == Json(bucket.constants) && one.value("m", Json()) == m &&
               one.value("us", Json()).is_number();
    });
    return found == tuned->end() ? std::nullopt : std::optional((*found)["us"].get<double>());
}

bool is_power_of_two(std::int64_t value) {
    return (value & (value - 1)) == 0;
}

Record record_of(const ImportedRow& was) {
    Record record;
    for (std::size_t i = 0; i < was.columns.size(); ++i) {
        record.emplace(was.columns[i], was.row.cells[i]);
    }
    return record;
}

class Exporter {
  public:
    explicit Exporter(std::optional<std::int64_t> cu_num) : cu_num_(cu_num) {}

    void add(const tables::Row& row) {
        const auto* op = operators::find_operator(row.operator_name);
        if (op == nullptr || row.operator_name != "fused_moe") {
            ++made_.num_of_other_operators;
            return;
        }
        if (auto why = why_no_key(*op, row); !why.empty()) {
            made_.unwritten.push_back({row.origin.text(), {}, std::move(why)});
            return;
        }
        const auto provenance = Json::parse(row.provenance.document);
        std::int64_t before = 0;
        for (const auto& bucket : row.buckets) {
            if (const auto was = imported_row(row, bucket)) {
                records_.push_back(record_of(*was));
            } else if (auto why = add(row, provenance, bucket, before); !why.empty()) {
                made_.unwritten.push_back(
                    {row.origin.text(), fmt::format("max_m {}", bucket.max_m), std::move(why)});
            }
            before = bucket.max_m;
        }
    }

    Export finish() {
        std::vector<std::string> columns(kColumns.begin(), kColumns.end());
        std::set<std::string, std::less<>> known(columns.begin(), columns.end());
        for (const auto& record : records_) {
            for (const auto& [column, cell] : record) {
                if (known.insert(column).second) {
                    columns.push_back(column);
                }
            }
        }
        made_.text = csv_record(columns);
        for (const auto& record : records_) {
            std::vector<std::string> cells;
            for (const auto& column : columns) {
                const auto found = record.find(column);
                cells.push_back(found == record.end() ? std::string() : found->second);
            }
            made_.text += csv_record(cells);
        }
        made_.num_rows = records_.size();
        return std::move(made_);
    }

  private:
    // Why there is no row for it; empty where there is.
    std::string add(const tables::Row& row, const Json& provenance, const tables::Bucket& bucket,
                    std::int64_t before) {
        if (bucket.max_m == before) {
            return "the form has one row for a token, and the bucket before this one is it; this is for "
                   "problems "
                   "that demand more";
        }
        if (bucket.template_id != kTemplate) {
            return fmt::format("no name of the form stands for {}", bucket.template_id);
        }
        const auto names = names_of(bucket.constants);
        if (!names) {
            return names.error();
        }
        if (!is_power_of_two(bucket.max_m) || bucket.max_m > kMaxToken) {
            return fmt::format("the form's tokens are powers of two up to {}", kMaxToken);
        }
        std::int64_t token = 1;
        while (token <= before) {
            token *= 2;
        }
        for (; token <= bucket.max_m; token *= 2) {
            auto record = key_of(row, cu_num_);
            record.insert({{"token", fmt::format("{}", token)},
                           {"block_m", fmt::format("{}", bucket.constants.find("block_m")->second)},
                           {"kernelName1", names->first},
                           {"kernelName2", names->second},
                           {"ksplit", "0"},
                           {"run_1stage", "0"}});
            if (const auto us = measured_us(provenance, bucket, token)) {
                record.insert(
                    {{"us1", fmt::format("{}", *us)}, {"us2", "0"}, {"us", fmt::format("{}", *us)}});
            }
            records_.push_back(std::move(record));
        }
        return {};
    }

    const std::optional<std::int64_t> cu_num_;
    std::vector<Record> records_;
    Export made_;
};

}  // namespace

Export export_csv(std::span<const std::shared_ptr<const tables::Row>> rows,
                  std::optional<std::int64_t> cu_num) {
    Exporter exporter(cu_num);
    for (const auto& row : rows) {
        exporter.add(*row);
    }
    return exporter.finish();
}

}  // namespace kiln::tuned_config
