#include "runtime/tables/writer.hpp"

#include <doctest/doctest.h>

#include "tests/tables/support.hpp"

using namespace kiln::tables;

TEST_CASE("WriterWritesWhatTheLoaderReads") {
    Row first;
    first.operator_name = "linear";
    first.problem = {{"n", std::int64_t{16}}, {"name", "a \"quoted\" one\n"}};
    first.target = *parse_target("gfx950:xnack-");
    first.buckets = {{4, "linear/small_m", {{"tiles_n", 2}}}, {32, "linear/other", {}}};
    first.provenance = {"derived", "why", R"({"kind":"derived","note":"why","more":[1,{"a":2}]})"};
    Row second = first;
    second.target = *parse_target("gfx950");
    second.cu_num = 256;

    const auto loaded = load_one(to_table_text({first, second}));
    CHECK_MESSAGE(loaded.faults.empty(), to_error(loaded.faults).message);
    const auto rows = loaded.table.rows();
    REQUIRE(rows.size() == 2);
    first.problem.emplace("k", std::int64_t{64});  // the default, filled in
    CHECK(rows[0]->operator_name == first.operator_name);
    CHECK(rows[0]->problem == first.problem);
    CHECK(rows[0]->target == first.target);
    CHECK(rows[0]->buckets == first.buckets);
    CHECK(rows[0]->provenance.note == "why");
    CHECK(rows[0]->provenance.document == R"({"kind":"derived","more":[1,{"a":2}],"note":"why"})");
    CHECK(rows[0]->cu_num == std::nullopt);
    CHECK(rows[1]->target == second.target);
    CHECK(rows[1]->cu_num == 256);
    CHECK(load_one(to_table_text({})).faults.empty());
}

TEST_CASE("WriterKeepsTheFormOfTheShippedTables") {
    Row row;
    row.operator_name = "linear";
    row.problem = {{"k", std::int64_t{128}}, {"n", std::int64_t{16}}};
    row.target = *parse_target("gfx950");
    row.cu_num = 256;
    row.buckets = {{4, "linear/small_m", {{"tiles_n", 1}, {"waves", 1}}}, {8, "linear/small_m", {}}};
    row.provenance = {"untuned", "", R"({"kind":"untuned"})"};
    CHECK(to_table_text({row}) == R"({
  "schema": 1,
  "rows": [
    {
      "operator": "linear",
      "problem": {"k": 128, "n": 16},
      "target": "gfx950",
      "cu_num": 256,
      "buckets": [
        {"max_m": 4, "template": "linear/small_m", "constants": {"tiles_n": 1, "waves": 1}},
        {"max_m": 8, "template": "linear/small_m", "constants": {}}
      ],
      "provenance": {"kind": "untuned"}
    }
  ]
}
)");
}

TEST_CASE("ARowTakesThePlaceOfAnotherAndNothingElseChanges") {
    Row row;
    row.operator_name = "linear";
    row.problem = {{"n", std::int64_t{98}}};
    row.target = *parse_target("gfx950");
    row.buckets = {{4, "linear/small_m", {}}};
    row.provenance = {"untuned", "", R"({"kind":"untuned"})"};
    const auto problem_of = [](const std::string& text, std::size_t index) {
        const auto loaded = load_one(text);
        REQUIRE_MESSAGE(loaded.faults.empty(), to_error(loaded.faults).message);
        return std::get<std::int64_t>(loaded.table.rows().at(index)->problem.at("n"));
    };
    const auto first = row_text(R"({"n": 16})", "gfx950", kBuckets);
    const auto second = row_text(R"({"n": 18})", "gfx950", kBuckets);
    const std::string text = table_of(first + " ,\n\n" + second);
    const auto replaced = with_row(text, 0, row);
    REQUIRE(replaced);
    CHECK(problem_of(*replaced, 0) == 98);
    CHECK(problem_of(*replaced, 1) == 18);
    CHECK(replaced->find(" ,\n\n" + second) != std::string::npos);
    const auto appended = with_row(text, std::nullopt, row);
    REQUIRE(appended);
    CHECK(problem_of(*appended, 2) == 98);
    CHECK(appended->find(first + " ,\n\n" + second) != std::string::npos);
    CHECK(problem_of(*with_row(to_table_text({}), std::nullopt, row), 0) == 98);
    CHECK_FALSE(with_row(text, 2, row));
    CHECK_FALSE(with_row("my notes", std::nullopt, row));
}
