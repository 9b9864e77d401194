#include "runtime/tables/table.hpp"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace kiln::tables;

namespace {

Row row(std::int64_t n, const char* target, const char* origin) {
    Row made;
    made.operator_name = "linear";
    made.problem = {{"n", n}, {"k", std::int64_t{64}}};
    made.target = *parse_target(target);
    made.buckets = {{4, "linear/a", {}}, {16, "linear/b", {}}, {32, "linear/c", {}}};
    made.origin = {origin, 1};
    return made;
}

// The strongest layer first.
Table table_of(std::vector<std::vector<Row>> layers) {
    std::vector<RowLayer> made;
    for (auto& rows : layers) {
        made.push_back({LayerKind::named, {}, {}, std::move(rows)});
    }
    return Table(std::move(made));
}

// The origin of the row that is found, or the reason why none is.
std::string find(const Table& table, std::int64_t n, const char* device) {
    const auto lookup = table.find("linear", {{"n", n}, {"k", std::int64_t{64}}}, *parse_target(device));
    CHECK((lookup.row != nullptr) == (lookup.outcome == Lookup::Outcome::found));
    return lookup.row != nullptr ? lookup.row->origin.file : lookup.detail;
}

}  // namespace

TEST_CASE("TableFindsTheRowOfTheProblem") {
    const Table table = table_of({{row(16, "gfx950", "a"), row(32, "gfx950", "b")}});
    CHECK(find(table, 16, "gfx950") == "a");
    CHECK(find(table, 32, "gfx950:sramecc+:xnack-") == "b");
    const auto unknown =
        table.find("linear", {{"n", std::int64_t{48}}, {"k", std::int64_t{64}}}, Target{"gfx950", {}});
    CHECK(unknown.outcome == Lookup::Outcome::unknown_problem);
    CHECK(unknown.detail == "linear k=64 n=48: no row in the shape table");
    CHECK(table.find("router", {{"n", std::int64_t{16}}, {"k", std::int64_t{64}}}, Target{"gfx950", {}})
              .outcome == Lookup::Outcome::unknown_problem);
    // Equal names with other types, or fewer fields, are other problems.
    CHECK(table.find("linear", {{"n", "16"}, {"k", std::int64_t{64}}}, Target{"gfx950", {}}).row == nullptr);
    CHECK(table.find("linear", {{"n", std::int64_t{16}}}, Target{"gfx950", {}}).row == nullptr);
    CHECK(Table().find("linear", {}, Target{"gfx950", {}}).outcome == Lookup::Outcome::unknown_problem);
}

TEST_CASE("TableMoreSpecificRowWins") {
    const Table table = table_of(
        {{row(16, "gfx950:xnack+", "plus"), row(16, "gfx950", "plain"), row(16, "gfx950:xnack-", "minus"),
          row(16, "gfx950:sramecc+:xnack-", "both"), row(16, "gfx942", "other")}});
    CHECK(find(table, 16, "gfx950") == "plain");
    CHECK(find(table, 16, "gfx950:sramecc-:xnack-") == "minus");
    CHECK(find(table, 16, "gfx950:sramecc+:xnack-") == "both");
    CHECK(find(table, 16, "gfx950:sramecc+:xnack+") == "plus");
    CHECK(find(table, 16, "gfx942:xnack-") == "other");
}

TEST_CASE("TableRowForSoManyComputeUnitsServesThoseAndWinsThere") {
    Row whole = row(16, "gfx950", "256 units");
    whole.cu_num = 256;
    Row part = row(16, "gfx950", "64 units");
    part.cu_num = 64;
    Row small_only = row(32, "gfx950", "64 units");
    small_only.cu_num = 64;
    const Table table = table_of(
        {{row(16, "gfx950:xnack-", "pins more")}, {row(16, "gfx950", "any"), whole, part, small_only}});
    const auto asked = [&](std::int64_t n, std::optional<std::int64_t> cu_num) {
        return table.find("linear", {{"n", n}, {"k", std::int64_t{64}}},
                          {*parse_target("gfx950:sramecc+:xnack-"), cu_num});
    };
    CHECK(asked(16, 256).row->origin.file == "256 units");
    CHECK(asked(16, 64).row->origin.file == "64 units");
    CHECK(asked(16, 304).row->origin.file == "pins more");
    CHECK(asked(16, {}).row->origin.file == "pins more");  // nobody says how many there are
    CHECK(find(table, 16, "gfx950") == "any");
    CHECK(asked(32, 64).row != nullptr);
    const auto refused = asked(32, 256);
    CHECK(refused.outcome == Lookup::Outcome::other_features);
    CHECK(
        refused.detail ==
        "linear k=64 n=32: the device is gfx950:sramecc+:xnack- with 256 compute units, the shape table has "
        "rows for gfx950 with 64 compute units only");
    CHECK(asked(32, {}).row == nullptr);

    const auto hidden = table.shadowed(*asked(16, 256).row, asked(16, 256).row->problem,
                                       {*parse_target("gfx950:sramecc+:xnack-"), 256});
    REQUIRE(hidden.size() == 2);
    CHECK(hidden[0].row->origin.file == "pins more");
    CHECK(hidden[0].why == Shadowed::Why::less_specific);
    CHECK(hidden[1].row->origin.file == "any");
    CHECK(table.named_problems().size() == 5);  // none replaces another
}

TEST_CASE("TableOfTwoEquallySpecificRowsTheFirstWins") {
    const Table table =
        table_of({{row(16, "gfx950:sramecc+", "sramecc"), row(16, "gfx950:xnack-", "xnack")}});
    CHECK(find(table, 16, "gfx950:sramecc+:xnack-") == "sramecc");
}

TEST_CASE("TableRefusesAnotherTargetByName") {
    const Table table =
        table_of({{row(16, "gfx950", "a"), row(16, "gfx950:xnack+", "b"), row(32, "gfx950:xnack+", "c")}});
    const auto lookup = table.find("linear", {{"n", std::int64_t{16}}, {"k", std::int64_t{64}}},
                                   *parse_target("gfx942:xnack-"));
    CHECK(lookup.outcome == Lookup::Outcome::other_processor);
    CHECK(lookup.detail ==
          "linear k=64 n=16: the device is gfx942:xnack-, the shape table has rows for gfx950, gfx950:xnack+ "
          "only");
    CHECK(find(table, 32, "gfx950:sramecc+:xnack-") ==
          "linear k=64 n=32: the device is gfx950:sramecc+:xnack-, the shape table has rows for "
          "gfx950:xnack+ only");
}

TEST_CASE("TableOfFeaturesThatTheDeviceHasOtherwiseSaysSo") {
    const Table table = table_of({{row(16, "gfx950:xnack+", "a"), row(16, "gfx942", "b")}});
    const auto lookup = table.find("linear", {{"n", std::int64_t{16}}, {"k", std::int64_t{64}}},
                                   *parse_target("gfx950:sramecc+:xnack-"));
    CHECK(lookup.outcome == Lookup::Outcome::other_features);
    CHECK(
        lookup.detail ==
        "linear k=64 n=16: the device is gfx950:sramecc+:xnack-, the shape table has rows for gfx950:xnack+, "
        "gfx942 only");
}

TEST_CASE("TableStrongerLayerReplacesTheSameTargetAndTheMoreSpecificRowWins") {
    const Table table = table_of(
        {{row(16, "gfx950", "user"), row(48, "gfx942", "user"), row(64, "gfx950:xnack-", "user")},
         {row(16, "gfx950:xnack-", "shipped"), row(16, "gfx950", "replaced"), row(32, "gfx950", "shipped"),
          row(48, "gfx950", "shipped"), row(64, "gfx950", "shipped"), row(64, "gfx950:xnack-", "replaced")}});
    const char* device = "gfx950:sramecc+:xnack-";
    CHECK(find(table, 16, device) == "shipped");  // pins more than the user's
    CHECK(find(table, 16, "gfx950:xnack+") == "user");
    CHECK(find(table, 32, device) == "shipped");
    CHECK(find(table, 48, "gfx950") == "shipped");  // the user's row does not serve this device
    CHECK(find(table, 64, device) == "user");
    CHECK(table.rows().size() == 9);
    CHECK(table.named_problems().size() == 7);
}

TEST_CASE("TableOfTwoEquallySpecificRowsTheStrongerLayerWins") {
    const Table table =
        table_of({{row(16, "gfx950:xnack-", "user")}, {row(16, "gfx950:sramecc+", "shipped")}});
    CHECK(find(table, 16, "gfx950:sramecc+:xnack-") == "user");
}

TEST_CASE("TableSaysWhatARowHides") {
    const Table table = table_of({{row(16, "gfx950:xnack-", "user"), row(16, "gfx942", "elsewhere")},
                                  {row(16, "gfx950:xnack-", "system"), row(16, "gfx950", "general")},
                                  {row(16, "gfx950", "shipped"), row(16, "gfx950:xnack+", "other")}});
    const auto device = *parse_target("gfx950:sramecc+:xnack-");
    const auto lookup = table.find("linear", {{"n", std::int64_t{16}}, {"k", std::int64_t{64}}}, device);
    REQUIRE(lookup.row != nullptr);
    const auto hidden = table.shadowed(*lookup.row, lookup.row->problem, device);
    REQUIRE(hidden.size() == 3);
    CHECK(hidden[0].row->origin.file == "system");
    CHECK(hidden[0].why == Shadowed::Why::replaced);
    CHECK(hidden[1].row->origin.file == "general");
    CHECK(hidden[1].why == Shadowed::Why::less_specific);
    CHECK(hidden[2].row->origin.file == "shipped");
    CHECK(hidden[2].why == Shadowed::Why::replaced);
}

TEST_CASE("TableRowsStayWhereTheyAreWhenItIsMoved") {
    Table first = table_of({{row(16, "gfx950", "a")}});
    const Row* before = first.rows().front();
    const Table second = std::move(first);
    CHECK(second.find("linear", before->problem, Target{"gfx950", {}}).row == before);
}

TEST_CASE("RowTheFirstBucketThatHoldsMServes") {
    const auto made = row(16, "gfx950", "a");
    const auto served_by = [&](std::int64_t m) {
        const auto* bucket = made.bucket_for(m);
        return bucket == nullptr ? std::string("none") : bucket->template_id;
    };
    CHECK(served_by(-1) == "none");
    CHECK(served_by(0) == "none");
    CHECK(served_by(1) == "linear/a");
    CHECK(served_by(4) == "linear/a");
    CHECK(served_by(5) == "linear/b");
    CHECK(served_by(16) == "linear/b");
    CHECK(served_by(17) == "linear/c");
    CHECK(served_by(32) == "linear/c");
    CHECK(served_by(33) == "none");
}
