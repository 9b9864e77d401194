#include "runtime/tables/table.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace kiln::tables;

namespace {

Row row(std::int64_t n, const char* target, const char* origin) {
    Row made;
    made.operator_name = "linear";
    made.problem = {{"n", n}, {"k", std::int64_t{64}}};
    made.target = *parse_target(target);
    made.buckets = {{4, "linear/a", {}}, {16, "linear/b", {}}, {32, "linear/c", {}}};
    made.origin = origin;
    return made;
}

// The origin of the row that is found, or the reason why none is.
std::string find(const Table& table, std::int64_t n, const char* device) {
    const auto lookup = table.find("linear", {{"n", n}, {"k", std::int64_t{64}}}, *parse_target(device));
    CHECK((lookup.row != nullptr) == (lookup.outcome == Lookup::Outcome::found));
    return lookup.row != nullptr ? lookup.row->origin : lookup.detail;
}

}  // namespace

TEST_CASE("TableFindsTheRowOfTheProblem") {
    const Table table({{row(16, "gfx950", "a"), row(32, "gfx950", "b")}});
    CHECK(find(table, 16, "gfx950") == "a");
    CHECK(find(table, 32, "gfx950:sramecc+:xnack-") == "b");
    const auto unknown =
        table.find("linear", {{"n", std::int64_t{48}}, {"k", std::int64_t{64}}}, {"gfx950", {}});
    CHECK(unknown.outcome == Lookup::Outcome::unknown_problem);
    CHECK(unknown.detail == "linear k=64 n=48: no row in the shape table");
    CHECK(table.find("router", {{"n", std::int64_t{16}}, {"k", std::int64_t{64}}}, {"gfx950", {}}).outcome ==
          Lookup::Outcome::unknown_problem);
    // Equal names with other types, or fewer fields, are other problems.
    CHECK(table.find("linear", {{"n", "16"}, {"k", std::int64_t{64}}}, {"gfx950", {}}).row == nullptr);
    CHECK(table.find("linear", {{"n", std::int64_t{16}}}, {"gfx950", {}}).row == nullptr);
    CHECK(Table().find("linear", {}, {"gfx950", {}}).outcome == Lookup::Outcome::unknown_problem);
}

TEST_CASE("TableMoreSpecificRowWins") {
    const Table table(
        {{row(16, "gfx950:xnack+", "plus"), row(16, "gfx950", "plain"), row(16, "gfx950:xnack-", "minus"),
          row(16, "gfx950:sramecc+:xnack-", "both"), row(16, "gfx942", "other")}});
    CHECK(find(table, 16, "gfx950") == "plain");
    CHECK(find(table, 16, "gfx950:sramecc-:xnack-") == "minus");
    CHECK(find(table, 16, "gfx950:sramecc+:xnack-") == "both");
    CHECK(find(table, 16, "gfx950:sramecc+:xnack+") == "plus");
    CHECK(find(table, 16, "gfx942:xnack-") == "other");
}

TEST_CASE("TableOfTwoEquallySpecificRowsTheFirstWins") {
    const Table table({{row(16, "gfx950:sramecc+", "sramecc"), row(16, "gfx950:xnack-", "xnack")}});
    CHECK(find(table, 16, "gfx950:sramecc+:xnack-") == "sramecc");
}

TEST_CASE("TableRefusesAnotherTargetByName") {
    const Table table(
        {{row(16, "gfx950", "a"), row(16, "gfx950:xnack+", "b"), row(32, "gfx950:xnack+", "c")}});
    const auto lookup = table.find("linear", {{"n", std::int64_t{16}}, {"k", std::int64_t{64}}},
                                   *parse_target("gfx942:xnack-"));
    CHECK(lookup.outcome == Lookup::Outcome::other_target);
    CHECK(lookup.detail ==
          "linear k=64 n=16: the device is gfx942:xnack-, the shape table has rows for gfx950, gfx950:xnack+ "
          "only");
    CHECK(find(table, 32, "gfx950:sramecc+:xnack-") ==
          "linear k=64 n=32: the device is gfx950:sramecc+:xnack-, the shape table has rows for "
          "gfx950:xnack+ only");
}

TEST_CASE("TableEarlierLayerWinsEvenOverAMoreSpecificRow") {
    const Table table(
        {{row(16, "gfx950", "user"), row(48, "gfx942", "user")},
         {row(16, "gfx950:xnack-", "shipped"), row(32, "gfx950", "shipped"), row(48, "gfx950", "shipped")}});
    CHECK(find(table, 16, "gfx950:sramecc+:xnack-") == "user");
    CHECK(find(table, 32, "gfx950:sramecc+:xnack-") == "shipped");
    CHECK(find(table, 48, "gfx950") == "shipped");  // the user's row does not serve this device
    CHECK(table.rows().size() == 5);
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
