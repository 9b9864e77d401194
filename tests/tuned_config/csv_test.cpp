#include "runtime/tuned_config/csv.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace kiln::tuned_config;

namespace {

std::vector<std::vector<std::string>> cells_of(const std::string& text) {
    const auto read = read_csv("t.csv", text);
    CHECK_MESSAGE(read.faults.empty(), kiln::tables::to_error(read.faults).message);
    std::vector<std::vector<std::string>> cells;
    for (const auto& record : read.records) {
        cells.emplace_back();
        for (const auto& cell : record) {
            cells.back().push_back(cell.text);
        }
    }
    return cells;
}

std::string fault_of(const std::string& text) {
    const auto read = read_csv("t.csv", text);
    REQUIRE(read.faults.size() == 1);
    return read.faults.front().text();
}

using Rows = std::vector<std::vector<std::string>>;

}  // namespace

TEST_CASE("CsvReadsQuotesLineEndsAndTheByteOrderMark") {
    CHECK(cells_of("a,b\n1,2\n") == Rows{{"a", "b"}, {"1", "2"}});
    CHECK(cells_of("a,b\r\n1,2") == Rows{{"a", "b"}, {"1", "2"}});
    CHECK(cells_of("\xEF\xBB\xBF"
                   "a,b\n\n1,2\r\n\r\n") == Rows{{"a", "b"}, {"1", "2"}});
    CHECK(cells_of("a,b\n\"x,\"\"y\"\"\r\nz\",\"\"\n") == Rows{{"a", "b"}, {"x,\"y\"\r\nz", ""}});
    CHECK(cells_of("a,,\n,,\n") == Rows{{"a", "", ""}, {"", "", ""}});
    CHECK(cells_of("").empty());
}

TEST_CASE("CsvNotesThePlaceOfEveryCell") {
    const auto read = read_csv("t.csv", "a,b,c\n\"é,\n\",ö,\"x\"\"\"\n");
    REQUIRE(read.records.size() == 2);
    const auto& record = read.records[1];
    CHECK(record[0].position == kiln::tables::Position{2, 1});
    CHECK(record[1].position == kiln::tables::Position{3, 3});  // behind a cell of two lines
    CHECK(record[2].position == kiln::tables::Position{3, 5});
}

TEST_CASE("CsvFaultsSayWhatWasExpectedAndWhere") {
    CHECK(fault_of("a,b\n1\n") == "t.csv:2:1: the document: expected 2 cells, as in the header, found 1");
    CHECK(fault_of("a,b\n1,2,\n") == "t.csv:2:1: the document: expected 2 cells, as in the header, found 3");
    CHECK(fault_of("a,b\n1,\"2\n") ==
          "t.csv:2:3: the document: expected a closing quote for the cell that begins here, found the end of "
          "the file");
    CHECK(fault_of("a,b\n1,\"2\"x\n") ==
          "t.csv:2:6: the document: expected a comma or the end of the line behind the closing quote, found "
          "\"x\"");
    CHECK(
        fault_of("a,b\n1,2\"\n").starts_with("t.csv:2:4: the document: expected a cell with a quote in it"));
    CHECK(fault_of("a,b\n1,\r2\n") ==
          "t.csv:2:3: the document: expected UTF-8 without control characters, found the byte 0x0D");
    CHECK(fault_of("a,b\n1,\xFF\n").starts_with("t.csv:2:3: "));
    CHECK(fault_of(std::string("a,b\n1,\0\n", 8)).starts_with("t.csv:2:3: "));
    CHECK(fault_of("a\n" + std::string(kMaxCell + 1, 'x')).starts_with("t.csv:2:1: "));
    CHECK(cells_of("a\n" + std::string(kMaxCell, 'x')).size() == 2);
    // Overlong, a surrogate, beyond the last character, cut off.
    for (const char* text :
         {"\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC3", "\x80"}) {
        CHECK(fault_of(std::string("a\n") + text).starts_with("t.csv:2:1: "));
    }
}

TEST_CASE("CsvWrittenIsReadAgainAsItWas") {
    const unsigned seed = std::random_device()();
    MESSAGE("seed ", seed);
    std::mt19937 random(seed);
    constexpr std::string_view kLetters[] = {"a", ",", "\"", "\n", "\r\n", "é", " ", ""};
    const auto pick = [&](std::size_t below) { return random() % below; };
    for (int round = 0; round < 200; ++round) {
        const std::size_t width = 1 + pick(4);
        Rows rows(1 + pick(4), std::vector<std::string>(width));
        std::string text;
        for (auto& record : rows) {
            for (auto& cell : record) {
                for (std::size_t i = pick(6); i > 0; --i) {
                    cell += kLetters[pick(std::size(kLetters))];
                }
            }
            text += csv_record(record);
        }
        CHECK(cells_of(text) == rows);
    }
}
