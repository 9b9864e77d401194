#include "runtime/tables/table.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace kiln::tables {

std::string to_text(const Problem& problem) {
    std::vector<std::string> fields;
    for (const auto& [name, value] : problem) {
        fields.push_back(
            std::visit([&n = name](const auto& held) { return fmt::format("{}={}", n, held); }, value));
    }
    return fmt::format("{}", fmt::join(fields, " "));
}

const Bucket* Row::bucket_for(std::int64_t m) const {
    if (m < 1) {
        return nullptr;
    }
    const auto bucket =
        std::ranges::find_if(buckets, [m](const Bucket& candidate) { return m <= candidate.max_m; });
    return bucket == buckets.end() ? nullptr : &*bucket;
}

Table::Table(std::vector<std::vector<Row>> layers) : layers_(std::move(layers)) {}

Lookup Table::find(std::string_view operator_name, const Problem& problem, const Target& device) const {
    std::vector<std::string> other_targets;
    for (const auto& layer : layers_) {
        const Row* best = nullptr;
        for (const auto& row : layer) {
            if (row.operator_name != operator_name || row.problem != problem) {
                continue;
            }
            if (!serves(row.target, device)) {
                other_targets.push_back(row.target.text());
            } else if (best == nullptr || row.target.features.size() > best->target.features.size()) {
                best = &row;
            }
        }
        if (best != nullptr) {
            return {Lookup::Outcome::found, best, {}};
        }
    }
    const auto asked = fmt::format("{} {}", operator_name, to_text(problem));
    if (!other_targets.empty()) {
        return {Lookup::Outcome::other_target, nullptr,
                fmt::format("{}: the device is {}, the shape table has rows for {} only", asked,
                            device.text(), fmt::join(other_targets, ", "))};
    }
    return {Lookup::Outcome::unknown_problem, nullptr, fmt::format("{}: no row in the shape table", asked)};
}

std::vector<const Row*> Table::rows() const {
    std::vector<const Row*> rows;
    for (const auto& layer : layers_) {
        for (const auto& row : layer) {
            rows.push_back(&row);
        }
    }
    return rows;
}

}  // namespace kiln::tables
