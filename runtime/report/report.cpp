#include "runtime/report/report.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/operators/operator.hpp"
#include "runtime/report/chart_builder.hpp"
#include "runtime/report/table_times.hpp"

namespace kiln::report {
namespace {

std::string problem_text(const std::string& operator_name, const tables::Problem& problem) {
    if (const auto* op = operators::find_operator(operator_name)) {
        if (const auto whole = operators::complete(*op, problem)) {
            return operators::format_problem(*op, *whole);
        }
    }
    return tables::to_text(problem);
}

std::string problem_text(const tables::Row& row) {
    return row.is_general() ? fmt::format("{}{}{}", tables::to_text(row.problem),
                                          row.problem.empty() ? "" : " ", tables::to_text(row.open))
                            : problem_text(row.operator_name, row.problem);
}

std::string where_of(const tune::Conditions& conditions) {
    std::vector<std::string> parts = {
        conditions.kind == "model" ? fmt::format("counts from {}", conditions.device) : conditions.device};
    if (!conditions.driver.empty()) {
        parts.push_back(conditions.driver);
    }
    if (!conditions.compiler.empty()) {
        // The first of its libraries; where another one tells charts apart, apart_text() says so.
        parts.push_back(conditions.compiler.substr(0, conditions.compiler.find(',')));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

// Of a chart that looks like another one, what keeps them apart.
std::string apart_text(const tune::Conditions& first, const tune::Conditions& second) {
    return fmt::format("not the same as above: {}", first.difference(second));
}

// Problems and charts in the order in which they are first met.
class Collector {
  public:
    struct ProblemKey {
        std::string operator_name, problem, device;

        friend auto operator<=>(const ProblemKey&, const ProblemKey&) = default;
    };

    // The chart of what a tune found under such conditions.
    ChartBuilder& chart(const ProblemKey& problem, const tune::Conditions& conditions) {
        auto& entry = find(problem);
        const tune::Conditions* alike = nullptr;
        for (auto& [known, where, builder] : entry.charts) {
            if (known && known->difference(conditions).empty()) {
                return builder;
            }
            alike = known && alike == nullptr && where == where_of(conditions) ? &*known : alike;
        }
        const auto where = where_of(conditions);
        const auto basis = conditions.kind == "model" ? Basis::model : Basis::measured;
        const auto title =
            alike == nullptr ? where : fmt::format("{}; {}", where, apart_text(*alike, conditions));
        entry.charts.push_back({conditions, where, ChartBuilder(basis, title)});
        return entry.charts.back().builder;
    }
    // The chart of what a row says on this basis.
    ChartBuilder& chart(const ProblemKey& problem, Basis basis, const std::string& where) {
        auto& entry = find(problem);
        for (auto& [known, there, builder] : entry.charts) {
            if (!known && there == where && builder.basis() == basis) {
                return builder;
            }
        }
        entry.charts.push_back({std::nullopt, where, ChartBuilder(basis, where)});
        return entry.charts.back().builder;
    }

    std::vector<ProblemReport> finish() {
        std::vector<ProblemReport> made;
        for (auto& entry : entries_) {
            for (auto& one : entry.charts) {
                entry.report.charts.push_back(one.builder.finish());
            }
            made.push_back(std::move(entry.report));
        }
        return made;
    }

  private:
    struct OneChart {
        std::optional<tune::Conditions> conditions;  // nothing: of a row
        std::string where;
        ChartBuilder builder;
    };
    struct Entry {
        ProblemReport report;
        std::vector<OneChart> charts;
    };
    Entry& find(const ProblemKey& problem) {
        const auto [place, is_new] = problems_.emplace(problem, entries_.size());
        if (is_new) {
            entries_.push_back({{problem.operator_name, problem.problem, problem.device, {}}, {}});
        }
        return entries_[place->second];
    }

    std::map<ProblemKey, std::size_t> problems_;
    std::vector<Entry> entries_;
};

}  // namespace

std::string_view name_of(Basis basis) {
    switch (basis) {
        case Basis::measured:
            return "measured";
        case Basis::model:
            return "model";
        case Basis::imported_whole:
            return "imported_end_to_end";
        case Basis::imported_stages:
            return "imported_sum_of_stages";
        case Basis::imported_unclear:
            break;
    }
    return "imported_unclear";
}

std::string_view title_of(Basis basis) {
    switch (basis) {
        case Basis::measured:
            return "measured, end to end";
        case Basis::model:
            return "model, not measured";
        case Basis::imported_whole:
            return "from a tuned-config file, end to end";
        case Basis::imported_stages:
            return "from a tuned-config file, sum of stages timed alone";
        case Basis::imported_unclear:
            break;
    }
    return "from a tuned-config file that does not say what was timed";
}

std::string to_text(const Limit& limit) {
    double all = 0;
    for (const auto& [name, us] : limit.parts) {
        all += us;
    }
    std::vector<std::string> parts;
    for (const auto& [name, us] : limit.parts) {
        parts.push_back(fmt::format("{} {:.0f}%", name, 100 * us / all));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::string time_text(double us) {
    if (!(us > 0)) {
        return "0";
    }
    const int digits = 2 - static_cast<int>(std::floor(std::log10(us)));
    return fmt::format("{:.{}f}", us, std::clamp(digits, 0, 9));
}

Report make_report(const tune::Records& records, std::span<const tables::Row* const> rows) {
    Collector collector;
    const auto chart_of = [&](const tune::Subject& subject, const tune::Conditions& conditions) -> auto& {
        return collector.chart(
            {subject.operator_name, problem_text(subject.operator_name, subject.problem), subject.target},
            conditions);
    };
    for (const auto& record : records.candidates) {
        const auto& finding = record.finding;
        const bool ok = finding.status == tune::Status::ok;
        chart_of(record.subject, record.conditions)
            .add(
                record.bucket,
                {record.subject.m, ok ? finding.us : std::nullopt, std::string(tune::to_text(finding.status)),
                 finding.message, record.present, !record.finals_us.empty()},
                ok ? finding.cost : std::nullopt);
    }
    for (const auto& record : records.choices) {
        chart_of(record.subject, record.conditions).add_choice(record);
    }
    Report report;
    for (const auto* row : rows) {
        const auto times = times_of(*row);
        report.num_untimed_rows += times.empty() ? 1 : 0;
        for (const auto& time : times) {
            const auto where =
                fmt::format("{}{}row {}", time.where, time.where.empty() ? "" : ", ", row->origin.text());
            collector.chart({row->operator_name, problem_text(*row), row->device_text()}, time.basis, where)
                .add(time.bucket, {time.m, time.us, "ok", {}, time.stands, false});
        }
    }
    report.problems = collector.finish();
    return report;
}

}  // namespace kiln::report
