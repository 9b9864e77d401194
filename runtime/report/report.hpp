// What a person wants to see of candidates and of rows that say times: for each problem the time of each
// candidate by M, the winner, where another template takes over, and what bounds the winner.
//
// Figures stand in one chart only where they compare. Times that were measured, costs of a model, published
// times end to end and published sums of stages are four things; two devices, drivers, compilers or settings
// are two, and so are two rows of tables. A chart is of one of each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/tables/table.hpp"
#include "runtime/tune/record.hpp"

namespace kiln::report {

// What the figures of a chart are.
enum class Basis {
    measured,          // timed, end to end
    model,             // a cost model's: nothing was timed
    imported_whole,    // from a tuned-config file, end to end
    imported_stages,   // from a tuned-config file, the sum of stages that were timed alone
    imported_unclear,  // from a tuned-config file that does not say which
};
[[nodiscard]] std::string_view name_of(Basis basis);   // "model": for programs
[[nodiscard]] std::string_view title_of(Basis basis);  // "model, not measured": for persons

// One candidate at one M.
struct Point {
    std::int64_t m = 0;
    std::optional<double> us;  // nothing: it came to none, and `status` says why
    std::string status = "ok";
    std::string message;
    bool present = false;      // the tables had it when it was tried
    bool is_finalist = false;  // `us` is of the longer replays in several processes
};

// One candidate: a template with its constants, in a bucket that ends at M or in one that ends further up.
struct Series {
    std::string template_id;
    tables::Constants constants;
    std::optional<std::int64_t> max_m;  // of a bucket that ends beyond the points' M
    std::string label;                  // the template's name, and what tells it from the chart's others
    std::vector<Point> points;          // ascending by M, each once
};

// What the winner's model cost is made of.
struct Limit {
    // Kernels' times by what bounds them, and what launching takes; the largest first.
    std::vector<std::pair<std::string, double>> parts;
    // What its memory traffic would take if it were all: no schedule of this candidate is faster.
    double memory_us = 0;
};

struct Winner {
    std::int64_t m = 0;
    std::size_t series = 0;  // index in Chart::series
    double us = 0;
    std::optional<std::size_t> runner_up;
    std::optional<double> runner_up_us;
    std::optional<Limit> limit;  // only a model knows
    std::string why;             // the tune's sentence; empty where nobody chose: it is the fastest
};

// The winner's template changes between two values of M.
struct Crossover {
    std::int64_t below = 0, from = 0;  // the last M of the one, the first of the other
    std::string before, after;         // templates
};

struct Chart {
    Basis basis = Basis::measured;
    std::string where;  // device, driver and compiler, or file and row
    std::vector<Series> series;
    std::vector<Winner> winners;  // ascending by M; none for an M at which nothing came to a time
    std::vector<Crossover> crossovers;
};

struct ProblemReport {
    std::string operator_name;
    std::string problem;  // "hidden=4096 ...", without fields that have their default
    std::string device;   // "gfx950", "gfx950 with 256 compute units": what rows are for
    std::vector<Chart> charts;
};

struct Report {
    std::vector<ProblemReport> problems;  // in the order in which they are first met
    std::size_t num_untimed_rows = 0;     // of the tables, that say no time
};

// Of two records for one candidate under the same conditions the later one counts. The winner at an M is what
// the tune chose; where its choice is not in the records, the fastest. Rows give the times that their
// provenance says (table_times.hpp).
[[nodiscard]] Report make_report(const tune::Records& records, std::span<const tables::Row* const> rows);

// "memory 71%, launch 29%"
[[nodiscard]] std::string to_text(const Limit& limit);
// Three significant digits: "12.3", "0.0456", "1230".
[[nodiscard]] std::string time_text(double us);

}  // namespace kiln::report
