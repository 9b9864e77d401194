#include "runtime/tables/table.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace kiln::tables {
namespace {

std::size_t hash_of(std::string_view operator_name, const Problem& problem) {
    std::size_t hash = std::hash<std::string_view>()(operator_name);
    const auto mix = [&hash](std::size_t part) { hash = hash * 0x9E3779B97F4A7C15U + part; };
    for (const auto& [name, value] : problem) {
        mix(std::hash<std::string>()(name));
        mix(std::hash<FieldValue>()(value));
    }
    return hash;
}

}  // namespace

std::string to_text(const Problem& problem) {
    std::vector<std::string> fields;
    for (const auto& [name, value] : problem) {
        fields.push_back(
            std::visit([&n = name](const auto& held) { return fmt::format("{}={}", n, held); }, value));
    }
    return fmt::format("{}", fmt::join(fields, " "));
}

std::string_view to_text(LayerKind kind) {
    switch (kind) {
        case LayerKind::shipped:
            return "shipped";
        case LayerKind::system:
            return "system";
        case LayerKind::user:
            return "user";
        case LayerKind::named:
            break;
    }
    return "named";
}

std::string_view to_text(Shadowed::Why why) {
    return why == Shadowed::Why::replaced ? "another row goes before it" : "less specific";
}

std::string Origin::text() const {
    return fmt::format("{}:{}", file, line);
}

const Bucket* Row::bucket_for(std::int64_t m) const {
    if (m < 1) {
        return nullptr;
    }
    const auto bucket =
        std::ranges::find_if(buckets, [m](const Bucket& candidate) { return m <= candidate.max_m; });
    return bucket == buckets.end() ? nullptr : &*bucket;
}

bool Row::serves(const DeviceTraits& device) const {
    return (!cu_num || cu_num == device.cu_num) && tables::serves(target, device.target);
}

bool Row::admits(const Problem& asked) const {
    return asked.size() == problem.size() + open.size() &&
           std::ranges::all_of(asked, [this](const auto& field) {
               if (const auto settled = problem.find(field.first); settled != problem.end()) {
                   return settled->second == field.second;
               }
               const auto range = open.find(field.first);
               return range != open.end() && range->second.admits(field.second);
           });
}

Row Row::at(const Problem& asked, std::int64_t slots) const {
    Row row = *this;
    row.problem = asked;
    row.open.clear();
    row.problems.clear();
    row.buckets.clear();
    for (Bucket bucket : buckets) {
        if (bucket.max_pairs) {
            bucket.max_m = slots > 0 ? *bucket.max_pairs / slots : 0;
        }
        const std::int64_t last = row.buckets.empty() ? 0 : row.buckets.back().max_m;
        const bool stands_twice =
            bucket.max_m == last && last > 0 && !bucket.max_pairs && !row.buckets.back().max_pairs;
        if (bucket.max_m > last || stands_twice) {
            row.buckets.push_back(std::move(bucket));
        }
    }
    return row;
}

Table::Table(std::vector<RowLayer> layers) : layers_(std::move(layers)) {
    for (std::size_t i = 0; i < layers_.size(); ++i) {
        for (const auto& row : layers_[i].rows) {
            (row.is_general() ? general_ : index_[hash_of(row.operator_name, row.problem)])
                .push_back({i, &row});
        }
    }
}

std::vector<Table::Entry> Table::entries_of(std::string_view operator_name, const Problem& problem) const {
    std::vector<Place> places;
    if (const auto exact = index_.find(hash_of(operator_name, problem)); exact != index_.end()) {
        std::ranges::copy_if(exact->second, std::back_inserter(places), [&](const Place& place) {
            return place.row->operator_name == operator_name && place.row->problem == problem;
        });
    }
    std::ranges::copy_if(general_, std::back_inserter(places), [&](const Place& place) {
        return place.row->operator_name == operator_name && place.row->admits(problem);
    });
    std::ranges::stable_sort(places, {}, &Place::layer);
    std::vector<Entry> entries;
    for (const auto& [layer, row] : places) {
        const bool in_force = std::ranges::none_of(entries, [&r = *row](const Entry& entry) {
            return entry.row->target == r.target && entry.row->cu_num == r.cu_num;
        });
        entries.push_back({row, in_force});
    }
    return entries;
}

Lookup Table::find(std::string_view operator_name, const Problem& problem, const DeviceTraits& device) const {
    const auto pins = [](const Row& row) {
        return std::pair(row.cu_num.has_value(), row.target.features.size());
    };
    const Row* best = nullptr;
    bool same_processor = false;
    std::vector<std::string> other_targets;
    for (const auto& [row, in_force] : entries_of(operator_name, problem)) {
        if (!in_force) {
            continue;
        }
        if (!row->serves(device)) {
            other_targets.push_back(row->device_text());
            same_processor = same_processor || row->target.processor == device.target.processor;
        } else if (best == nullptr || pins(*row) > pins(*best)) {
            best = row;
        }
    }
    if (best != nullptr) {
        return {Lookup::Outcome::found, best, {}};
    }
    const auto asked = fmt::format("{} {}", operator_name, to_text(problem));
    if (other_targets.empty()) {
        return {Lookup::Outcome::unknown_problem, nullptr,
                fmt::format("{}: no row in the shape table", asked)};
    }
    return {same_processor ? Lookup::Outcome::other_features : Lookup::Outcome::other_processor, nullptr,
            fmt::format("{}: the device is {}, the shape table has rows for {} only", asked, device.text(),
                        fmt::join(other_targets, ", "))};
}

std::vector<Shadowed> Table::shadowed(const Row& winner, const Problem& problem,
                                      const DeviceTraits& device) const {
    std::vector<Shadowed> hidden;
    for (const auto& [row, in_force] : entries_of(winner.operator_name, problem)) {
        if (row != &winner && row->serves(device)) {
            hidden.push_back({row, in_force ? Shadowed::Why::less_specific : Shadowed::Why::replaced});
        }
    }
    return hidden;
}

std::vector<const Row*> Table::rows_in_force(std::string_view operator_name, const Problem& problem) const {
    std::vector<const Row*> rows;
    for (const auto& [row, in_force] : entries_of(operator_name, problem)) {
        if (in_force) {
            rows.push_back(row);
        }
    }
    return rows;
}

std::vector<Table::Named> Table::named_problems() const {
    std::vector<Named> named;
    const auto add = [&](const Row& row, const Problem& problem) {
        const auto in_force = rows_in_force(row.operator_name, problem);
        if (std::ranges::find(in_force, &row) != in_force.end()) {
            named.push_back({&row, &problem});
        }
    };
    for (const Row* row : rows()) {
        if (!row->is_general()) {
            add(*row, row->problem);
        }
        for (const Problem& problem : row->problems) {
            add(*row, problem);
        }
    }
    return named;
}

std::vector<const Row*> Table::rows() const {
    std::vector<const Row*> rows;
    for (const auto& layer : layers_) {
        for (const auto& row : layer.rows) {
            rows.push_back(&row);
        }
    }
    return rows;
}

}  // namespace kiln::tables
