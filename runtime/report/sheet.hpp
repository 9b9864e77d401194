// The tables and sentences that both forms of a report print. Inside this room only.
#pragma once

#include <string>
#include <vector>

#include "runtime/report/report.hpp"

namespace kiln::report {

// What a reader must know before the first figure.
inline constexpr std::string_view kLegend =
    "Times are microseconds of a whole launch. Bold: the winner at that M, which is what the tune chose, or "
    "else "
    "the fastest. An asterisk: what the tables had. Figures of two charts do not compare: each says what it "
    "is and where it was made.";

struct Cell {
    std::string text;
    bool winner = false;
    bool number = false;
    bool sentence = false;
};

struct Sheet {
    std::string caption;
    std::vector<std::string> header;
    std::vector<std::vector<Cell>> rows;  // as long as the header
};

// "fused_moe hidden=4096 ... on gfx950"
[[nodiscard]] std::string title_of(const ProblemReport& problem);
// "model, not measured: counts from ..."
[[nodiscard]] std::string title_of(const Chart& chart);

// Every candidate by every M: its time, or why it has none; * marks what the tables had.
[[nodiscard]] Sheet candidates_of(const Chart& chart);
// For each M the winner, the runner-up, what bounds the winner, and what the tune said.
[[nodiscard]] Sheet winners_of(const Chart& chart);
// Where the winner's template changes, or that it does not.
[[nodiscard]] std::vector<std::string> crossovers_of(const Chart& chart);
// What the limits of the winners are, or that nobody knows them; empty where there is no winner.
[[nodiscard]] std::string limits_of(const Chart& chart);
// Why candidates came to no time, a line for each candidate and reason; empty where all did.
[[nodiscard]] std::vector<std::string> troubles_of(const Chart& chart);
// "3 rows of the tables say no time."; empty where each does.
[[nodiscard]] std::string untimed_of(const Report& report);

}  // namespace kiln::report
