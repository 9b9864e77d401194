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
    return why == Shadowed::Why::replaced ? "replaced by a stronger layer" : "less specific";
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

Table::Table(std::vector<RowLayer> layers) : layers_(std::move(layers)) {
    for (const auto& layer : layers_) {
        for (const auto& row : layer.rows) {
            const auto stronger = entries_of(row.operator_name, row.problem);
            const bool in_force = std::ranges::none_of(
                stronger, [&](const Entry& entry) { return entry.row->target == row.target; });
            index_[hash_of(row.operator_name, row.problem)].push_back({&row, in_force});
        }
    }
}

std::vector<Table::Entry> Table::entries_of(std::string_view operator_name, const Problem& problem) const {
    std::vector<Entry> entries;
    const auto found = index_.find(hash_of(operator_name, problem));
    if (found != index_.end()) {
        std::ranges::copy_if(found->second, std::back_inserter(entries), [&](const Entry& entry) {
            return entry.row->operator_name == operator_name && entry.row->problem == problem;
        });
    }
    return entries;
}

Lookup Table::find(std::string_view operator_name, const Problem& problem, const Target& device) const {
    const Row* best = nullptr;
    bool same_processor = false;
    std::vector<std::string> other_targets;
    for (const auto& [row, in_force] : entries_of(operator_name, problem)) {
        if (!in_force) {
            continue;
        }
        if (!serves(row->target, device)) {
            other_targets.push_back(row->target.text());
            same_processor = same_processor || row->target.processor == device.processor;
        } else if (best == nullptr || row->target.features.size() > best->target.features.size()) {
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

std::vector<Shadowed> Table::shadowed(const Row& winner, const Target& device) const {
    std::vector<Shadowed> hidden;
    for (const auto& [row, in_force] : entries_of(winner.operator_name, winner.problem)) {
        if (row != &winner && serves(row->target, device)) {
            hidden.push_back({row, in_force ? Shadowed::Why::less_specific : Shadowed::Why::replaced});
        }
    }
    return hidden;
}

std::vector<const Row*> Table::rows_in_force() const {
    auto all = rows();
    std::erase_if(all, [&](const Row* row) {
        return std::ranges::none_of(entries_of(row->operator_name, row->problem),
                                    [row](const Entry& entry) { return entry.row == row && entry.in_force; });
    });
    return all;
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
