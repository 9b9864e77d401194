// From records of a tune and rows to charts: what stands in one, who wins, where it crosses.

#include "runtime/report/report.hpp"

#include "tests/report/support.hpp"

using namespace kiln::report;
using kiln::tune::Records;
using kiln::tune::Status;

TEST_CASE("CandidatesOfOneProblemAreSeriesByM") {
    const auto report = crossing();
    REQUIRE(report.problems.size() == 1);
    const auto& problem = report.problems[0];
    CHECK(problem.operator_name == "fused_moe");
    CHECK(problem.problem == "hidden=4096 intermediate=512 experts=512 slots=10");
    CHECK(problem.device == "gfx950");
    const auto& chart = problem.charts[0];
    REQUIRE(chart.series.size() == 2);
    CHECK(chart.series[0].template_id == "fused_moe/mxmoe");
    CHECK(chart.series[0].label == "mxmoe");  // its constants tell nothing apart
    CHECK(chart.series[1].label == "small_m");
    REQUIRE(chart.series[1].points.size() == 2);
    CHECK(chart.series[1].points[0].m == 16);
    CHECK(chart.series[1].points[1].us == 130.4);
    CHECK(chart.where == "counts from a simulator, driver 1.2, a compiler 0123456789ab");
}

TEST_CASE("AModelAndMeasurementsNeverShareAChart") {
    const auto report = crossing();
    const auto& charts = report.problems[0].charts;
    REQUIRE(charts.size() == 2);
    CHECK(charts[0].basis == Basis::model);
    CHECK(charts[1].basis == Basis::measured);
    CHECK(charts[0].series.size() == 2);
    CHECK(charts[1].series.size() == 1);
    CHECK(title_of(charts[0].basis) == "model, not measured");
    CHECK(title_of(charts[1].basis) == "measured, end to end");
}

TEST_CASE("WhatDiffersInAnyConditionIsAnotherChart") {
    const auto report_of = [](auto change) {
        auto other = candidate(small(16), 16, 2, "measured");
        change(other);
        Records records;
        records.candidates = {candidate(small(16), 16, 1, "measured"), other};
        return make_report(records, {}).problems[0].charts;
    };
    const auto charts_of = [&](auto change) { return report_of(change).size(); };
    CHECK(charts_of([](auto& other) { other.conditions.date = "2030-01-01"; }) == 1);
    CHECK(charts_of([](auto& other) { other.conditions.device = "b"; }) == 2);
    CHECK(charts_of([](auto& other) { other.conditions.driver = "b"; }) == 2);
    CHECK(charts_of([](auto& other) { other.conditions.compiler = "b"; }) == 2);
    CHECK(charts_of([](auto& other) { other.conditions.compute_units = 64; }) == 2);
    CHECK(charts_of([](auto& other) { other.conditions.seed = 9; }) == 2);
    CHECK(charts_of([](auto& other) { other.conditions.iters = 9; }) == 2);
    // Two that look alike say what keeps them apart.
    const auto alike = report_of([](auto& other) { other.conditions.iters = 9; });
    CHECK(alike[1].where == alike[0].where + "; not the same as above: iters 0 and 9");
    const auto parts = report_of([](auto& other) { other.conditions.compiler += "b"; });
    CHECK(parts[1].where.starts_with(parts[0].where + "; not the same as above: compiler "));
}

TEST_CASE("ProblemsAndTargetsAreApart") {
    auto wide = candidate(small(16), 16, 2);
    wide.subject.problem = experts(8192);
    auto elsewhere = candidate(small(16), 16, 2);
    elsewhere.subject.target = "gfx950:xnack-";
    auto unknown = candidate(small(16), 16, 2);
    unknown.subject.operator_name = "yours";
    Records records;
    records.candidates = {candidate(small(16), 16, 1), wide, elsewhere, unknown, candidate(small(8), 8, 1)};
    const auto report = make_report(records, {});
    REQUIRE(report.problems.size() == 4);
    CHECK(report.problems[0].charts[0].winners.size() == 2);
    CHECK(report.problems[1].problem.starts_with("hidden=8192 "));
    CHECK(report.problems[2].device == "gfx950:xnack-");
    CHECK(report.problems[3].problem == "experts=512 hidden=4096 intermediate=512 slots=10 weights=mxfp4");
}

TEST_CASE("TheFastestWinsWhereNobodyChoseAndTemplatesCross") {
    const auto chart = crossing().problems[0].charts[0];
    REQUIRE(chart.winners.size() == 2);
    CHECK(chart.series[chart.winners[0].series].template_id == "fused_moe/small_m");
    CHECK(chart.winners[0].us == 40);
    CHECK(chart.winners[0].runner_up_us == 60);
    CHECK(chart.series[chart.winners[1].series].template_id == "fused_moe/mxmoe");
    CHECK(chart.winners[1].why.empty());
    REQUIRE(chart.crossovers.size() == 1);
    CHECK(chart.crossovers[0].below == 16);
    CHECK(chart.crossovers[0].from == 32);
    CHECK(chart.crossovers[0].before == "fused_moe/small_m");
    CHECK(chart.crossovers[0].after == "fused_moe/mxmoe");
}

TEST_CASE("TheLimitIsWhatTheModelCostIsMadeOf") {
    const auto report = crossing();
    const auto& limit = report.problems[0].charts[0].winners[0].limit;
    REQUIRE(limit);
    CHECK(to_text(*limit) == "memory 75%, launch 25%");
    CHECK(limit->memory_us == doctest::Approx(30));
    CHECK_FALSE(report.problems[0].charts[1].winners[0].limit);  // times alone do not say
}

TEST_CASE("WhatTheTuneChoseWinsThoughAnotherIsFaster") {
    Records records;
    records.candidates = {candidate(small(64), 16, 41), candidate(sorted(16), 16, 40)};
    records.candidates[0].present = true;
    records.choices = {choice(16, small(64), sorted(16), "stays: 2.4% is not more than 3%")};
    const auto chart = make_report(records, {}).problems[0].charts[0];
    REQUIRE(chart.winners.size() == 1);
    const auto& winner = chart.winners[0];
    CHECK(chart.series[winner.series].label == "small_m (bucket up to 64)");
    CHECK(chart.series[winner.series].points[0].present);
    CHECK(winner.us == 41);
    CHECK(winner.runner_up_us == 40);
    CHECK(winner.why == "stays: 2.4% is not more than 3%");

    // A choice of which the file has no candidate says nothing here.
    records.choices = {choice(16, small(99), sorted(16), "because")};
    const auto without = make_report(records, {}).problems[0].charts[0];
    CHECK(without.winners[0].us == 40);
    CHECK(without.winners[0].why.empty());
}

TEST_CASE("FinalistsAreComparedWithFinalistsAlone") {
    Records records;
    auto replayed = candidate(small(16, 8), 16, 12, "measured");
    replayed.finals_us = {11, 12, 13};
    records.candidates = {candidate(small(16, 4), 16, 11.9, "measured"), replayed};
    const auto chart = make_report(records, {}).problems[0].charts[0];
    CHECK(chart.winners[0].us == 12);
    CHECK_FALSE(chart.winners[0].runner_up);
    CHECK(chart.series[0].label == "small_m columns=4");
    CHECK(chart.series[1].label == "small_m columns=8");
}

TEST_CASE("ABucketThatEndsFurtherUpIsACandidateOfItsOwn") {
    Records records;
    records.candidates = {candidate(small(64), 16, 5), candidate(small(16), 16, 4),
                          candidate(small(64), 64, 9)};
    const auto chart = make_report(records, {}).problems[0].charts[0];
    REQUIRE(chart.series.size() == 2);
    CHECK(chart.series[0].label == "small_m");
    CHECK(chart.series[0].points.size() == 2);
    CHECK(chart.series[1].max_m == 64);
    CHECK(chart.series[1].points[0].us == 5);
}

TEST_CASE("OfTwoRecordsForOneCandidateTheLaterCounts") {
    Records records;
    records.candidates = {modelled(small(16), 16, 5), candidate(small(16), 16, 4)};
    const auto chart = make_report(records, {}).problems[0].charts[0];
    REQUIRE(chart.series.size() == 1);
    CHECK(chart.series[0].points[0].us == 4);
    CHECK_FALSE(chart.winners[0].limit);  // that was of the other one
}

TEST_CASE("CandidatesWithoutATimeSayWhyAndWinNothing") {
    Records records;
    records.candidates = {failing(small(16), 16, Status::wrong, "off by 7"),
                          failing(sorted(16), 16, Status::hung, "")};
    records.candidates[0].finding.us = 1;  // a record has no business to say so
    const auto chart = make_report(records, {}).problems[0].charts[0];
    CHECK(chart.winners.empty());
    CHECK(chart.crossovers.empty());
    CHECK_FALSE(chart.series[1].points[0].us);
    CHECK(chart.series[1].points[0].status == "wrong");
    CHECK(chart.series[1].points[0].message == "off by 7");
    CHECK(chart.series[0].points[0].status == "hung");
}

TEST_CASE("TimesHaveThreeDigits") {
    CHECK(time_text(12.345) == "12.3");
    CHECK(time_text(0.0456) == "0.0456");
    CHECK(time_text(1234.5) == "1234");
    CHECK(time_text(99.96) == "100.0");
    CHECK(time_text(0) == "0");
}
