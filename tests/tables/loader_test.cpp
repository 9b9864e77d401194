// What loading makes of tables whose form is right: rows, and faults of meaning.

#include "runtime/tables/loader.hpp"

#include <doctest/doctest.h>

#include "runtime/tables/layers.hpp"
#include "runtime/tables/positioned_json.hpp"
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
    CHECK(row.origin.text() == "t.json:2");
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
              "t.json:8:73: /rows/2/buckets/1/constants/tiles_m: expected tiles_n, found \"tiles_m\"",
              "t.json:9:26: /rows/2/buckets/2/max_m: expected more than the 8 of the bucket before, found 4",
          });
}

TEST_CASE("LoaderKeepsSoundRowsBesideFaultyOnes") {
    const auto loaded =
        load_one(table_of("{},\n" + kSound + ",\n" + row_text(R"({"n": 17})", "gfx950", kBuckets)));
    CHECK(loaded.faults.size() == 6);
    REQUIRE(loaded.table.rows().size() == 1);
    CHECK(loaded.table.rows().front()->origin.text() == "t.json:2");
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
    const std::vector<TableText> two_texts{{"a.json", table_of(first)}, {"b.json", table_of(second)}};
    const auto loaded = loader->load({named(two_texts)});
    REQUIRE(loaded.faults.size() == 1);
    CHECK(loaded.faults.front().source == "b.json");
    CHECK(loaded.faults.front().found.find("the first stands at a.json:1") != std::string::npos);

    // Two layers may both have it: the earlier wins.
    const auto layered = loader->load({named({two_texts[1]}), named({two_texts[0]})});
    CHECK(layered.faults.empty());
    CHECK(layered.table.rows().size() == 2);
    const auto found = layered.table.find("linear", {{"n", std::int64_t{16}}, {"k", std::int64_t{64}}},
                                          *parse_target("gfx950:sramecc+:xnack-"));
    REQUIRE(found.row != nullptr);
    CHECK(found.row->origin.text() == "b.json:1");

    // Another target is another row, and so is another number of compute units.
    CHECK(faults_of(table_of(first + "," + kSound)).empty());
    const auto on = [](const std::string& cu_num) {
        return R"({"cu_num": )" + cu_num + ", " + kSound.substr(1);
    };
    CHECK(load_one(table_of(on("256") + "," + kSound + "," + on("64"))).table.rows().size() == 3);
    CHECK(faults_of(table_of(on("64") + "," + on("64")))
              .front()
              .find("on gfx950 with 64 compute units (the first stands at t.json:1)") != std::string::npos);
    CHECK(faults_of(table_of(on("0"))).front().starts_with("t.json:1:35: /rows/0/cu_num: "));
    CHECK(faults_of(table_of(on("\"256\""))).front().starts_with("t.json:1:35: /rows/0/cu_num: "));
}

TEST_CASE("LoaderFaultsComeByLayerTextAndPlace") {
    const auto loaded =
        make_loader()->load({named({{"a.json", "{}"}, {"b.json", "["}}), named({{"c.json", "7"}})});
    REQUIRE(loaded.faults.size() == 4);
    CHECK(loaded.faults[0].source == "a.json");
    CHECK(loaded.faults[1].source == "a.json");
    CHECK(loaded.faults[2].source == "b.json");
    CHECK(loaded.faults[3].source == "c.json");
}

TEST_CASE("LoaderFindsNoFaultInTheShippedTables") {
    const auto read = read_layers({{LayerKind::named, KILN_TEST_SHAPES}});
    CHECK(read.faults.empty());
    REQUIRE(!read.layers.front().texts.empty());
    const auto loaded = make_loader([](Row&) { return std::vector<RowFault>{}; })->load(read.layers);
    CHECK_MESSAGE(loaded.faults.empty(), to_error(loaded.faults).message);
}

TEST_CASE("LoaderOfAShippedTextSaysWhatIsWrongWithoutTheSchema") {
    auto layer = named({{"shipped.json", table_of(kSound + ",\n" + R"({"operator": 7})" + ",\n[]")}});
    layer.kind = LayerKind::shipped;
    const auto loaded = make_loader()->load({layer});
    CHECK(loaded.table.rows().size() == 1);
    REQUIRE(loaded.faults.size() == 2);
    CHECK(loaded.faults[0].text().starts_with(
        "shipped.json:2:1: /rows/1: expected a row as the schema describes it, found "));
    CHECK(loaded.faults[1].position.line == 3);
}

TEST_CASE("LoaderKeepsARowThatItWarnsOf") {
    const auto loaded = load_one(table_of(kSound), [](Row&) {
        return std::vector<RowFault>{
            {"/target", "another", "this", RowFault::At::value, RowFault::Severity::warning}};
    });
    CHECK(loaded.faults.empty());
    CHECK(loaded.table.rows().size() == 1);
    REQUIRE(loaded.warnings.size() == 1);
    CHECK(loaded.warnings.front().text() == "t.json:1:79: /rows/0/target: expected another, found this");
}

TEST_CASE("LoaderListsALimitedNumberOfFaultsAndCountsTheRest") {
    std::string rows = "{}";
    for (int i = 0; i < 299; ++i) {
        rows += ", {}";
    }
    const auto loaded = load_one(table_of(rows));  // five members are missing in each
    REQUIRE(loaded.faults.size() == Loader::kMaxFaults + 1);
    CHECK(loaded.faults.back().found == "500 more faults from here on");
    CHECK(loaded.table.rows().empty());
}

TEST_CASE("LoaderRefusesATextBeyondItsBounds") {
    const std::string big = table_of(kSound) + std::string(Loader::kMaxBytes, ' ');
    CHECK(
        faults_of(big) ==
        Lines{fmt::format("t.json:1:1: the document: expected at most 4194304 bytes, found {}", big.size())});
    std::string many = "[0";
    for (std::size_t i = 0; i < PositionedJson::kMaxValues; ++i) {
        many += ",0";
    }
    CHECK(faults_of(many + "]").front().find("expected at most 250000 values, found more") !=
          std::string::npos);
    CHECK(load_one(many + "]").table.rows().empty());
}

TEST_CASE("LoaderNamesTheFilesOfEveryLayer") {
    const auto loaded = make_loader()->load(
        {named({{"a.json", table_of(kSound)}, {"b.json", table_of("")}}), {LayerKind::user, "home", {}}});
    REQUIRE(loaded.table.layers().size() == 2);
    CHECK(loaded.table.layers()[0].files == std::vector<std::string>{"a.json", "b.json"});
    CHECK(loaded.table.layers()[0].rows.size() == 1);
    CHECK(loaded.table.layers()[1].kind == LayerKind::user);
    CHECK(loaded.table.layers()[1].place == "home");
    CHECK(loaded.table.rows().front()->layer == LayerKind::named);
}

TEST_CASE("LoaderTakesAByteOrderMarkAndNotAnEmptyText") {
    const auto marked = load_one("\xEF\xBB\xBF" + table_of(kSound));
    CHECK(marked.faults.empty());
    REQUIRE(marked.table.rows().size() == 1);
    CHECK(marked.table.rows().front()->origin.line == 1);
    for (const char* text : {"", "\xEF\xBB\xBF", " \n"}) {
        CHECK(faults_of(text).size() == 1);
        CHECK(load_one(text).table.rows().empty());
    }
}
