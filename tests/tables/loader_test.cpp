// What loading makes of tables whose form is right: rows, and faults of meaning.

#include "runtime/tables/loader.hpp"

#include <doctest/doctest.h>

#include "tests/tables/support.hpp"

using namespace kiln::tables;

namespace {

const std::string kSound = row_text(R"({"n": 16})", "gfx950", kBuckets);

}  // namespace

TEST_CASE("LoaderReadsEveryMemberOfARow") {
    const std::string text = R"({"schema": 1, "rows": [
  {"operator": "linear", "problem": {"n": 16, "name": "a b"}, "target": "gfx950:xnack-:sramecc+",
   "buckets": [{"max_m": 8, "template": "linear/small_m", "constants": {"tiles_n": 2}},
               {"max_m": 32, "template": "linear/other", "constants": {}}],
   "provenance": {"note": "why", "kind": "measured", "seconds": 1.5}}
]})";
    const auto loaded = load_one(text);
    CHECK(loaded.faults.empty());
    REQUIRE(loaded.table.rows().size() == 1);
    const auto& row = *loaded.table.rows().front();
    CHECK(row.operator_name == "linear");
    CHECK(row.problem ==
          Problem{{"n", std::int64_t{16}}, {"k", std::int64_t{64}}, {"name", "a b"}});  // k by default
    CHECK(to_text(row.problem) == "k=64 n=16 name=a b");
    CHECK(row.target.text() == "gfx950:sramecc+:xnack-");
    REQUIRE(row.buckets.size() == 2);
    CHECK(row.buckets[0] == Bucket{8, "linear/small_m", {{"tiles_n", 2}}});
    CHECK(row.buckets[1] == Bucket{32, "linear/other", {}});
    CHECK(row.provenance.kind == "measured");
    CHECK(row.provenance.note == "why");
    CHECK(row.provenance.document == R"({"kind":"measured","note":"why","seconds":1.5})");
    CHECK(row.origin == "t.json:2");
}

TEST_CASE("LoaderFaultsOfMeaning") {
    const std::string text = R"({"schema": 1, "rows": [
  {"operator": "liner", "problem": {"n": 16}, "target": "gfx950",
   "buckets": [{"max_m": 8, "template": "linear/small_m", "constants": {}}], "provenance": {"kind": "untuned"}},
  {"operator": "linear", "problem": {"m": 16}, "target": "gfx950:xnack",
   "buckets": [{"max_m": 8, "template": "linear/small_m", "constants": {}}], "provenance": {"kind": "untuned"}},
  {"operator": "linear", "problem": {"n": 16}, "target": "gfx950",
   "buckets": [{"max_m": 8, "template": "linear/small_m", "constants": {"tiles_n": 3}},
               {"max_m": 8, "template": "linear/small_m", "constants": {"tiles_m": 1}},
               {"max_m": 4, "template": "linear/small_m", "constants": {"tiles_n": 4}}],
   "provenance": {"kind": "untuned"}}
]})";
    CHECK(faults_of(text) ==
          Lines{
              "t.json:2:16: /rows/0/operator: expected linear, found \"liner\"",
              "t.json:4:37: /rows/1/problem/n: expected the field n, found none",
              "t.json:4:58: /rows/1/target: expected a processor and the features it pins, such as gfx950 or "
              "gfx950:xnack-, found \"gfx950:xnack\"",
              "t.json:7:84: /rows/2/buckets/0/constants/tiles_n: expected a divisor of 16, found 3",
              "t.json:8:26: /rows/2/buckets/1/max_m: expected more than the 8 of the bucket before, found 8",
              "t.json:8:73: /rows/2/buckets/1/constants/tiles_m: expected tiles_n, found \"tiles_m\"",
              "t.json:9:26: /rows/2/buckets/2/max_m: expected more than the 8 of the bucket before, found 4",
          });
}

TEST_CASE("LoaderKeepsSoundRowsBesideFaultyOnes") {
    const auto loaded =
        load_one(table_of("{},\n" + kSound + ",\n" + row_text(R"({"n": 17})", "gfx950", kBuckets)));
    CHECK(loaded.faults.size() == 6);
    REQUIRE(loaded.table.rows().size() == 1);
    CHECK(loaded.table.rows().front()->origin == "t.json:2");
    CHECK(to_error(loaded.faults).code == kiln::ErrorCode::bad_input);
    CHECK(to_error(loaded.faults).message.find("\nt.json:3:") != std::string::npos);
}

TEST_CASE("LoaderTakesNoRowsFromATableItDoesNotUnderstand") {
    CHECK(load_one(R"({"schema": 2, "rows": [)" + kSound + "]}").table.rows().empty());
    CHECK(load_one(R"({"rows": [)" + kSound + "]}").table.rows().empty());
    CHECK(load_one(R"({"schema": 1, "rows": [)" + kSound + "]").table.rows().empty());
    CHECK(load_one(R"({"schema": 1, "rows": [)" + kSound + "], \"more\": 1}").table.rows().size() == 1);
}

TEST_CASE("LoaderOfTwoMembersOfOneNameTakesNeitherRow") {
    const auto twice = kSound.substr(0, kSound.size() - 1) + R"(, "target": "gfx942"})";
    const auto loaded = load_one(table_of(twice));
    REQUIRE(loaded.faults.size() == 1);
    CHECK(loaded.faults.front().pointer == "/rows/0/target");
    CHECK(loaded.faults.front().expected == "every member once");
    CHECK(loaded.table.rows().empty());
}

TEST_CASE("LoaderRowIsUniqueInItsLayer") {
    // The same problem, once with its default left out and once spelled out; the same target in two
    // spellings.
    const auto first = row_text(R"({"n": 16})", "gfx950:xnack-:sramecc+", kBuckets);
    const auto second = row_text(R"({"k": 64, "n": 16})", "gfx950:sramecc+:xnack-", kBuckets);
    CHECK(faults_of(table_of(first + ",\n" + second)) ==
          Lines{"t.json:2:1: /rows/1: expected one row for an operator, problem and target, found a second "
                "one for "
                "linear k=64 n=16 on gfx950:sramecc+:xnack- (the first stands at t.json:1)"});

    const auto loader = make_loader();
    const Layer two_texts{{"a.json", table_of(first)}, {"b.json", table_of(second)}};
    const auto loaded = loader->load({two_texts});
    REQUIRE(loaded.faults.size() == 1);
    CHECK(loaded.faults.front().source == "b.json");
    CHECK(loaded.faults.front().found.find("the first stands at a.json:1") != std::string::npos);

    // Two layers may both have it: the earlier wins.
    const auto layered = loader->load({{two_texts[1]}, {two_texts[0]}});
    CHECK(layered.faults.empty());
    CHECK(layered.table.rows().size() == 2);
    const auto found = layered.table.find("linear", {{"n", std::int64_t{16}}, {"k", std::int64_t{64}}},
                                          *parse_target("gfx950:sramecc+:xnack-"));
    REQUIRE(found.row != nullptr);
    CHECK(found.row->origin == "b.json:1");

    // Another target is another row.
    CHECK(faults_of(table_of(first + "," + kSound)).empty());
}

TEST_CASE("LoaderFaultsComeByLayerTextAndPlace") {
    const auto loaded = make_loader()->load({{{"a.json", "{}"}, {"b.json", "["}}, {{"c.json", "7"}}});
    REQUIRE(loaded.faults.size() == 4);
    CHECK(loaded.faults[0].source == "a.json");
    CHECK(loaded.faults[1].source == "a.json");
    CHECK(loaded.faults[2].source == "b.json");
    CHECK(loaded.faults[3].source == "c.json");
}

TEST_CASE("LoaderFindsNoFaultInTheShippedTables") {
    const auto layers = read_layers(KILN_TEST_SHAPES);
    REQUIRE(layers);
    REQUIRE(!layers->front().empty());
    const auto loaded = make_loader([](Row&) { return std::vector<RowFault>{}; })->load(*layers);
    CHECK_MESSAGE(loaded.faults.empty(), to_error(loaded.faults).message);
    // The three problems of Qwen3.5-397B at TP4, on a device as a driver reports it.
    const auto device = *parse_target("gfx950:sramecc+:xnack-");
    for (const auto& [n, k] :
         {std::pair<std::int64_t, std::int64_t>{5120, 4096}, {4608, 4096}, {4096, 2048}}) {
        const auto found = loaded.table.find("linear", {{"n", n}, {"k", k}}, device);
        REQUIRE(found.row != nullptr);
        CHECK(found.row->buckets.back().max_m == 32);
    }
}
