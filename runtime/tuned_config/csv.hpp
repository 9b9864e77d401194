// Comma-separated values as RFC 4180 has them, each cell with its place.
//
// Stricter than the readers that Debian packages: what follows a closing quote, a quote inside a bare cell, a
// bare carriage return and a record of another length are faults with line and column, never repaired in
// silence.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tables/fault.hpp"

namespace kiln::tuned_config {

struct Cell {
    std::string text;  // without its quotes
    tables::Position position;
};

struct CsvText {
    // The first is the header, by custom. Records of another length than the first are faults.
    std::vector<std::vector<Cell>> records;
    std::vector<tables::Fault> faults;  // in the order of the text; with any the records are not to be used
};

// Records end with LF or CRLF, the last one with nothing if it likes. A byte order mark at the beginning and
// empty lines are passed over. A cell in quotes may hold commas, line ends and, doubled, quotes. The text
// must be UTF-8 without other control characters than the tab, and a cell at most kMaxCell bytes.
inline constexpr std::size_t kMaxCell = 1024;
[[nodiscard]] CsvText read_csv(std::string_view source, std::string_view text);

// One record with its LF; cells are quoted where they must be.
[[nodiscard]] std::string csv_record(std::span<const std::string> cells);

}  // namespace kiln::tuned_config
