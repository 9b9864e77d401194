// What rows of tables say of times, and what keeps them apart.

#include <nlohmann/json.hpp>

#include "runtime/tuned_config/import.hpp"
#include "tests/report/support.hpp"
#include "tests/tuned_config/support.hpp"

using namespace kiln::report;
using nlohmann::json;

namespace {

Report report_of(const std::vector<kiln::tables::Row>& rows) {
    std::vector<const kiln::tables::Row*> pointers;
    for (const auto& one : rows) {
        pointers.push_back(&one);
    }
    return make_report({}, pointers);
}

json bucket_json(const kiln::tables::Bucket& bucket) {
    return {{"max_m", bucket.max_m}, {"template", bucket.template_id}, {"constants", bucket.constants}};
}

}  // namespace

TEST_CASE("SumsOfStagesAndTimesEndToEndAreTwoCharts") {
    using namespace kiln::tuned_config;
    const auto made = import_csv(
        "folder/public.csv",
        header() + row_text() + row_text({{"token", "32"}, {"us1", "50.5"}, {"us2", "49.5"}, {"us", "100"}}) +
            row_text({{"token", "64"}, {"us1", "50.5"}, {"us2", "49.5"}, {"us", "17"}}) +
            row_text({{"token", "128"}, {"us1", ""}, {"us2", ""}, {"us", ""}}),
        [](kiln::tables::Row&) { return std::vector<kiln::tables::RowFault>(); });
    REQUIRE(made.rows.size() == 1);
    const auto report = report_of(made.rows);
    REQUIRE(report.problems.size() == 1);
    CHECK(report.problems[0].device == "gfx950 with 256 compute units");
    const auto& charts = report.problems[0].charts;
    REQUIRE(charts.size() == 3);
    CHECK(charts[0].basis == Basis::imported_whole);
    CHECK(charts[0].where.starts_with("public.csv, row "));
    CHECK(charts[0].series[0].points.size() == 1);
    CHECK(charts[0].series[0].points[0].us == 92.1512);
    CHECK(charts[1].basis == Basis::imported_stages);
    CHECK(charts[1].series[0].points[0].m == 32);
    CHECK(charts[1].series[0].points[0].us == 100);
    CHECK(charts[2].basis == Basis::imported_unclear);
}

TEST_CASE("ABucketThatWasEditedHasNoPublishedTime") {
    using namespace kiln::tuned_config;
    auto made = import_csv("t.csv", header() + row_text(),
                           [](kiln::tables::Row&) { return std::vector<kiln::tables::RowFault>(); });
    made.rows[0].buckets[0].constants["g2_nt"] = 1;
    const auto report = report_of(made.rows);
    CHECK(report.problems.empty());
    CHECK(report.num_untimed_rows == 1);
}

TEST_CASE("ATunesRowsSayWhatWasChosenAndTheRunnerUp") {
    json next = bucket_json(sorted(16));
    next["us"] = 60.5;
    const json document = {
        {"kind", "measured"},
        {"device", "a GPU"},
        {"driver", "driver 1.2"},
        {"tuned",
         {{{"m", 16}, {"us", 50.5}, {"bucket", bucket_json(small(16))}, {"runner_up", next}},
          {{"m", 32}, {"us", 70}, {"bucket", bucket_json(sorted(32))}, {"stays", true}}}}};
    auto one = row("measured", document.dump(), {small(16), small(32)});
    auto report = report_of({one});
    REQUIRE(report.problems.size() == 1);
    const auto chart = report.problems[0].charts[0];
    CHECK(chart.basis == Basis::measured);
    CHECK(chart.where == "a GPU, driver 1.2, row t.json:3");
    REQUIRE(chart.winners.size() == 2);
    CHECK(chart.winners[0].us == 50.5);
    CHECK(chart.winners[0].runner_up_us == 60.5);
    CHECK(chart.series[1].points[0].present);
    CHECK(chart.winners[1].us == 70);
    CHECK_FALSE(chart.series[chart.winners[1].series].points[1].present);  // small_m serves there by now
    CHECK(chart.crossovers.size() == 1);

    one.provenance.kind = "model";
    CHECK(report_of({one}).problems[0].charts[0].basis == Basis::model);
    one.provenance.kind = "untuned";
    CHECK(report_of({one}).num_untimed_rows == 1);
}

TEST_CASE("TimesAtTheEndsOfBucketsAreRead") {
    const auto report = report_of({row(
        "measured", R"({"device": "a GPU", "microseconds_at_max_m": [7.5, 8]})", {small(16), small(32)})});
    const auto& chart = report.problems[0].charts[0];
    REQUIRE(chart.series.size() == 1);
    CHECK(chart.series[0].points[1].m == 32);
    CHECK(chart.series[0].points[1].us == 8);
}

TEST_CASE("RowsOfTwoPlacesDoNotShareAChart") {
    const auto* document = R"({"device": "a GPU", "microseconds_at_max_m": [7.5]})";
    auto second = row("measured", document, {small(16)});
    second.origin.line = 9;
    CHECK(report_of({row("measured", document, {small(16)}), second}).problems[0].charts.size() == 2);
}

TEST_CASE("AProvenanceThatIsNotAsItShouldBeSaysNoTime") {
    for (
        const char* document :
        {R"({"tuned": 7})", R"({"tuned": [7, {}, {"m": "x"}, {"m": 16}]})",
         R"({"tuned": [{"m": 16, "us": "fast", "bucket": {"max_m": 16, "template": "t", "constants": {}}}]})",
         R"({"tuned": [{"m": 16, "us": 7, "bucket": {"max_m": 16, "template": "t", "constants": {"a": "b"}}}]})",
         R"({"tuned": [{"m": 16, "us": 7, "bucket": [], "runner_up": 3}]})",
         R"({"microseconds_at_max_m": [1, 2]})", R"({"microseconds_at_max_m": ["x"]})",
         R"({"microseconds_at_max_m": [-1]})", R"({})"}) {
        CAPTURE(document);
        const auto report = report_of({row("measured", document, {small(16)})});
        CHECK(report.problems.empty());
        CHECK(report.num_untimed_rows == 1);
    }
}
