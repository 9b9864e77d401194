// What the published schema finds, and in which words.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "runtime/tables/positioned_json.hpp"
#include "tests/tables/support.hpp"

using namespace kiln::tables;

TEST_CASE("SchemaMustBeOne") {
    for (const char* text : {"", "{", "[]", R"({"type": 7})", R"({"$ref": "#/nowhere"})"}) {
        const auto loader = Loader::create(text, check_linear);
        REQUIRE_MESSAGE(!loader, text);
        CHECK(loader.error().code == kiln::ErrorCode::bad_input);
    }
}

TEST_CASE("SchemaIsDraft7WithoutRepeatedMembers") {
    const auto text = shipped_text("schema/shape_table.schema.json");
    CHECK(nlohmann::json::parse(text).at("$schema") == "http://json-schema.org/draft-07/schema#");
    CHECK(PositionedJson("schema", text).faults().empty());
}

TEST_CASE("SchemaFaultsOfTheDocument") {
    CHECK(faults_of("[]") ==
          Lines{"t.json:1:1: the document: expected type object, found an array of 0 elements"});
    CHECK(faults_of("{}") == Lines{"t.json:1:1: the document: expected a member \"rows\", found none",
                                   "t.json:1:1: the document: expected a member \"schema\", found none"});
    CHECK(faults_of(R"({"schema": 2, "rows": [{}]})").front() ==
          "t.json:1:12: /schema: expected one of 1, found 2");
    CHECK(faults_of(R"({"schema": 1, "rows": {}})") ==
          Lines{"t.json:1:23: /rows: expected type array, found an object of 0 members"});
    CHECK(faults_of(R"({"schema": 1, "rows": [], "row": [], "x/y": 1})") ==
          Lines{"t.json:1:27: /row: expected a member of $schema, rows, schema, found \"row\"",
                "t.json:1:38: /x~1y: expected a member of $schema, rows, schema, found \"x/y\""});
    CHECK(faults_of(R"({"$schema": "schema/shape_table.schema.json", "schema": 1, "rows": []})").empty());
}

TEST_CASE("SchemaFaultOfARangeWithoutEnds") {
    CHECK(faults_of(R"({"schema": 1, "rows": [{"operator": "a", "problem": {"experts": {}}, "target": "b",
 "buckets": [{"max_m": 1, "template": "a/b", "constants": {}}], "provenance": {"kind": "untuned"}}]})") ==
          Lines{"t.json:1:65: /rows/0/problem/experts: expected at least 1 member, found an object of 0 "
                "members"});
}

TEST_CASE("SchemaFaultsOfARow") {
    const std::string text = R"({"schema": 1, "rows": [
  {"operator": "Linear",
   "problem": {"n": 1.5, "K": 4, "k": true, "name": "text"},
   "target": 950,
   "buckets": [{"max_m": 0, "template": "linear", "constants": {"tiles_n": "2", "Waves": 1, "waves": 2147483648}}],
   "provenance": {"kind": "guess", "note": 1, "more": [1]},
   "extra": 0}
]})";
    CHECK(
        faults_of(text) ==
        Lines{
            "t.json:2:16: /rows/0/operator: expected text that matches ^[a-z][a-z0-9_]*$, found \"Linear\"",
            "t.json:3:21: /rows/0/problem/n: expected type integer or string or object, found 1.5",
            "t.json:3:26: /rows/0/problem/K: expected a name that matches ^[a-z][a-z0-9_]*$, found \"K\"",
            "t.json:3:39: /rows/0/problem/k: expected type integer or string or object, found true",
            "t.json:4:14: /rows/0/target: expected type string, found 950",
            "t.json:5:26: /rows/0/buckets/0/max_m: expected at least 1, found 0",
            "t.json:5:41: /rows/0/buckets/0/template: expected text that matches "
            "^[a-z][a-z0-9_]*/[a-z][a-z0-9_]*$, found \"linear\"",
            "t.json:5:76: /rows/0/buckets/0/constants/tiles_n: expected type integer, found \"2\"",
            "t.json:5:81: /rows/0/buckets/0/constants/Waves: expected a name that matches ^[a-z][a-z0-9_]*$, "
            "found "
            "\"Waves\"",
            "t.json:5:102: /rows/0/buckets/0/constants/waves: expected at most 2147483647, found 2147483648",
            "t.json:6:27: /rows/0/provenance/kind: expected one of untuned, derived, model, published, "
            "imported, measured, found "
            "\"guess\"",
            "t.json:6:44: /rows/0/provenance/note: expected type string, found 1",
            "t.json:7:4: /rows/0/extra: expected a member of buckets, cu_num, operator, problem, problems, "
            "provenance, target, "
            "found "
            "\"extra\"",
        });
}

TEST_CASE("SchemaFaultsOfWhatIsMissing") {
    CHECK(faults_of(table_of("{}")).size() == 5);
    CHECK(faults_of(table_of(row_text("{\"n\": 16}", "gfx950", "[]"))) ==
          Lines{"t.json:1:100: /rows/0/buckets: expected at least 1 element, found an array of 0 elements"});
    CHECK(faults_of(table_of(row_text("{\"n\": 16}", "gfx950", R"([{"max_m": 1, "constants": {}}, 7])"))) ==
          Lines{"t.json:1:101: /rows/0/buckets/0: expected a member \"template\", found none",
                "t.json:1:132: /rows/0/buckets/1: expected type object, found 7"});
}

TEST_CASE("SchemaFaultOfAHugeNumber") {
    const std::string text =
        table_of(row_text(R"({"n": 18446744073709551616, "k": 18446744073709551615})", "gfx950", kBuckets));
    CHECK(faults_of(text) ==
          Lines{"t.json:1:64: /rows/0/problem/n: expected type integer or string or object, found "
                "18446744073709551616",
                "t.json:1:91: /rows/0/problem/k: expected an integer of at most 64 bits, found "
                "18446744073709551615"});
}
