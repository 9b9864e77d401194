#include "runtime/report/table_times.hpp"

#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/tuned_config/provenance.hpp"

namespace kiln::report {
namespace {

using Json = nlohmann::json;

std::string text_of(const Json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<double> time_of(const Json& value) {
    return value.is_number() && value.get<double>() > 0 ? std::optional(value.get<double>()) : std::nullopt;
}

std::optional<double> time_of(const Json& object, const char* name) {
    const auto found = object.find(name);
    return found == object.end() ? std::nullopt : time_of(*found);
}

Basis basis_of(tuned_config::Timing timing) {
    switch (timing) {
        case tuned_config::Timing::end_to_end:
            return Basis::imported_whole;
        case tuned_config::Timing::sum_of_stages:
            return Basis::imported_stages;
        case tuned_config::Timing::unclear:
        case tuned_config::Timing::none:
            break;
    }
    return Basis::imported_unclear;
}

std::vector<TableTime> imported_times(const tables::Row& row, const Json& provenance) {
    std::vector<TableTime> times;
    for (const auto& bucket : row.buckets) {
        const auto was = tuned_config::imported_row(row, bucket);
        if (!was || was->row.timing == tuned_config::Timing::none) {
            continue;
        }
        if (const auto us = was->row.us ? was->row.us : was->row.us1) {
            times.push_back(
                {basis_of(was->row.timing), text_of(provenance, "file"), bucket, bucket.max_m, *us, true});
        }
    }
    return times;
}

// A bucket as the provenance spells one out; nothing where it does not.
std::optional<tables::Bucket> bucket_of(const Json& value) {
    if (!value.is_object()) {
        return std::nullopt;
    }
    const auto constants = value.find("constants");
    const auto max_m = value.find("max_m");
    tables::Bucket bucket;
    bucket.template_id = text_of(value, "template");
    if (bucket.template_id.empty() || constants == value.end() || !constants->is_object() ||
        max_m == value.end() || !max_m->is_number_integer()) {
        return std::nullopt;
    }
    bucket.max_m = max_m->get<std::int64_t>();
    for (const auto& [name, constant] : constants->items()) {
        if (!constant.is_number_integer()) {
            return std::nullopt;
        }
        bucket.constants.emplace(name, constant.get<std::int64_t>());
    }
    return bucket;
}

void add_tuned(const tables::Row& row, const Json& entry, const TableTime& base,
               std::vector<TableTime>& times) {
    const auto m = entry.find("m");
    if (m == entry.end() || !m->is_number_integer()) {
        return;
    }
    const auto add = [&](const std::optional<tables::Bucket>& bucket, std::optional<double> us) {
        if (bucket && us) {
            const auto* there = row.bucket_for(m->get<std::int64_t>());
            const bool stands = there != nullptr && there->template_id == bucket->template_id &&
                                there->constants == bucket->constants;
            times.push_back({base.basis, base.where, *bucket, m->get<std::int64_t>(), *us, stands});
        }
    };
    if (const auto bucket = entry.find("bucket"); bucket != entry.end()) {
        add(bucket_of(*bucket), time_of(entry, "us"));
    }
    if (const auto next = entry.find("runner_up"); next != entry.end()) {
        add(bucket_of(*next), time_of(*next, "us"));
    }
}

}  // namespace

std::vector<TableTime> times_of(const tables::Row& row) {
    const auto provenance = Json::parse(row.provenance.document);
    if (row.provenance.kind == "imported") {
        return imported_times(row, provenance);
    }
    std::vector<TableTime> times;
    if (row.provenance.kind != "measured" && row.provenance.kind != "model") {
        return times;
    }
    TableTime base;
    base.basis = row.provenance.kind == "model" ? Basis::model : Basis::measured;
    base.where = text_of(provenance, "device");
    if (const auto driver = text_of(provenance, "driver"); !driver.empty()) {
        base.where = fmt::format("{}, {}", base.where, driver);
    }
    if (const auto tuned = provenance.find("tuned"); tuned != provenance.end() && tuned->is_array()) {
        for (const auto& entry : *tuned) {
            if (entry.is_object()) {
                add_tuned(row, entry, base, times);
            }
        }
        return times;
    }
    const auto list = provenance.find("microseconds_at_max_m");
    if (list != provenance.end() && list->is_array() && list->size() == row.buckets.size()) {
        for (std::size_t i = 0; i < list->size(); ++i) {
            const auto us = time_of((*list)[i]);
            if (us && row.buckets[i].max_m > 0) {
                times.push_back({base.basis, base.where, row.buckets[i], row.buckets[i].max_m, *us, true});
            }
        }
    }
    return times;
}

}  // namespace kiln::report
