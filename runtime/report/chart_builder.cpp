#include "runtime/report/chart_builder.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace kiln::report {
namespace {

Limit limit_of(const tune::Cost& cost) {
    Limit limit;
    std::map<std::string, double> parts;
    for (const auto& kernel : cost.kernels) {
        parts[kernel.bound_by] += kernel.us - kernel.launch_us;
        parts["launch"] += kernel.launch_us;
        limit.memory_us += kernel.memory_us;
    }
    for (const auto& [name, us] : parts) {
        if (us > 0) {
            limit.parts.emplace_back(name, us);
        }
    }
    std::ranges::stable_sort(limit.parts, std::ranges::greater(),
                             [](const auto& part) { return part.second; });
    return limit;
}

// The fastest first; where any was replayed longer, only those that were are compared.
std::vector<std::pair<double, std::size_t>> ranking(const Chart& chart, std::int64_t m) {
    std::vector<std::pair<double, std::size_t>> finalists, all;
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
        const auto& points = chart.series[i].points;
        const auto point = std::ranges::find(points, m, &Point::m);
        if (point != points.end() && point->us) {
            (point->is_finalist ? finalists : all).emplace_back(*point->us, i);
        }
    }
    auto& ranked = finalists.empty() ? all : finalists;
    std::ranges::sort(ranked);
    return std::move(ranked);
}

}  // namespace

ChartBuilder::ChartBuilder(Basis basis, std::string where) {
    chart_.basis = basis;
    chart_.where = std::move(where);
}

ChartBuilder::Key ChartBuilder::key_of(const tables::Bucket& bucket, std::int64_t m) {
    return {bucket.template_id, bucket.constants, bucket.max_m == m ? 0 : bucket.max_m};
}

void ChartBuilder::add(const tables::Bucket& bucket, Point point, const std::optional<tune::Cost>& cost) {
    const auto key = key_of(bucket, point.m);
    limits_.erase({key, point.m});
    if (cost) {
        limits_.emplace(std::pair(key, point.m), limit_of(*cost));
    }
    points_[key].insert_or_assign(point.m, std::move(point));
}

void ChartBuilder::add_choice(const tune::ChoiceRecord& choice) {
    choices_.insert_or_assign(choice.subject.m, choice);
}

ChartBuilder::Place ChartBuilder::find(const std::optional<tune::Ranked>& ranked, std::int64_t m) const {
    if (!ranked) {
        return std::nullopt;
    }
    const auto series = points_.find(key_of(ranked->bucket, m));
    if (series == points_.end()) {
        return std::nullopt;
    }
    const auto point = series->second.find(m);
    if (point == series->second.end() || !point->second.us) {
        return std::nullopt;
    }
    return std::pair(static_cast<std::size_t>(std::distance(points_.begin(), series)), *point->second.us);
}

// Constants that all series of a template share tell nothing apart.
void ChartBuilder::label_series() {
    std::map<std::string, std::map<std::string, std::set<std::int64_t>>> values;
    for (const auto& series : chart_.series) {
        for (const auto& [name, value] : series.constants) {
            values[series.template_id][name].insert(value);
        }
    }
    for (auto& series : chart_.series) {
        series.label = series.template_id.substr(series.template_id.find('/') + 1);
        for (const auto& [name, value] : series.constants) {
            if (values[series.template_id][name].size() > 1) {
                series.label += fmt::format(" {}={}", name, value);
            }
        }
        if (series.max_m) {
            series.label += fmt::format(" (bucket up to {})", *series.max_m);
        }
    }
}

void ChartBuilder::add_winner(std::int64_t m) {
    Winner winner;
    winner.m = m;
    Place first, second;
    if (const auto choice = choices_.find(m); choice != choices_.end()) {
        first = find(choice->second.winner, m);
        second = find(choice->second.runner_up, m);
        winner.why = choice->second.why;
    }
    if (!first) {
        const auto ranked = ranking(chart_, m);
        if (ranked.empty()) {
            return;
        }
        winner.why.clear();
        first = std::pair(ranked[0].second, ranked[0].first);
        second.reset();
        if (ranked.size() > 1) {
            second = std::pair(ranked[1].second, ranked[1].first);
        }
    }
    winner.series = first->first;
    winner.us = first->second;
    if (second) {
        winner.runner_up = second->first;
        winner.runner_up_us = second->second;
    }
    const auto& key = std::next(points_.begin(), static_cast<std::ptrdiff_t>(winner.series))->first;
    if (const auto limit = limits_.find({key, m}); limit != limits_.end()) {
        winner.limit = limit->second;
    }
    chart_.winners.push_back(std::move(winner));
}

void ChartBuilder::add_crossovers() {
    for (std::size_t i = 1; i < chart_.winners.size(); ++i) {
        const auto& before = chart_.winners[i - 1];
        const auto& after = chart_.winners[i];
        const auto& from = chart_.series[before.series].template_id;
        const auto& to = chart_.series[after.series].template_id;
        if (from != to) {
            chart_.crossovers.push_back({before.m, after.m, from, to});
        }
    }
}

Chart ChartBuilder::finish() {
    std::set<std::int64_t> values;
    for (const auto& [key, points] : points_) {
        const auto& [template_id, constants, max_m] = key;
        Series series{template_id, constants, {}, {}, {}};
        if (max_m != 0) {
            series.max_m = max_m;
        }
        for (const auto& [m, point] : points) {
            series.points.push_back(point);
            values.insert(m);
        }
        chart_.series.push_back(std::move(series));
    }
    label_series();
    for (const auto m : values) {
        add_winner(m);
    }
    add_crossovers();
    return std::move(chart_);
}

}  // namespace kiln::report
