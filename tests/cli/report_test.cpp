// kiln report as its users meet it: over what a tune left, over tables, over both, and over what is neither.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "run_kiln.hpp"

namespace fs = std::filesystem;
using kiln::test::contains;
using kiln::test::contents;
using kiln::test::run_kiln;
using kiln::test::TemporaryFolder;
using kiln::test::with;
using nlohmann::json;

namespace {

struct Desk {
    TemporaryFolder folder;
    kiln::test::Variables environment = {{"KILN_CACHE_DIR", (folder.path() / "cache").string()},
                                         {"KILN_DEVICE", "sim"}};

    std::string path(const std::string& name) const { return (folder.path() / name).string(); }
    std::string write(const std::string& name, const std::string& text) const {
        fs::create_directories(fs::path(path(name)).parent_path());
        std::ofstream(path(name), std::ios::binary) << text;
        return path(name);
    }
    kiln::test::Outcome report(const std::vector<std::string>& arguments) const {
        return run_kiln(with({"report"}, arguments), environment);
    }
};

// A line of candidates, as they were measured on a GPU that is not here.
std::string measured_line(int m, int waves, double us) {
    return json{{"schema", 1},
                {"record", "candidate"},
                {"operator", "linear"},
                {"problem", {{"n", 16}, {"k", 512}}},
                {"target", "gfx950"},
                {"m", m},
                {"kind", "measured"},
                {"device",
                 {{"name", "a GPU"}, {"target", "gfx950"}, {"compute_units", 256}, {"simulated", false}}},
                {"driver", "driver 1.2"},
                {"compiler", "0123456789abcdef"},
                {"date", "2026-01-31"},
                {"settings",
                 {{"seed", 1},
                  {"error_bound", 1},
                  {"min_improvement", 3},
                  {"warmup", 5},
                  {"iters", 20},
                  {"processes", 3}}},
                {"bucket", {{"max_m", m}, {"template", "linear/small_m"}, {"constants", {{"waves", waves}}}}},
                {"present", false},
                {"status", "ok"},
                {"us", us}}
               .dump() +
           "\n";
}

std::string table(const std::string& provenance) {
    return R"({"schema": 1, "rows": [
  {"operator": "linear", "problem": {"n": 16, "k": 512}, "target": "gfx950",
   "buckets": [{"max_m": 16, "template": "linear/small_m",
                "constants": {"tiles_n": 1, "waves": 1, "lane_rows": 16, "blocks_ahead": 1}}],
   "provenance": )" +
           provenance + "}]}";
}

}  // namespace

TEST_CASE_FIXTURE(Desk, "ReportOfATuneOnTheSimulator") {
    const auto candidates = path("candidates.jsonl"), rows = path("rows.json");
    const auto tuned = run_kiln(
        {"tune", "linear", "n=16", "k=512", "--m", "4", "--all-candidates", candidates, "--out", rows},
        environment);
    INFO(tuned.err);
    REQUIRE(tuned.exit_code == 0);
    const auto choice = json::parse(contents(candidates).substr(contents(candidates).rfind("\n{") + 1));
    REQUIRE(choice["record"] == "choice");

    const auto document = report({candidates, "--json"}).json();
    REQUIRE(document["problems"].size() == 1);
    CHECK(document["problems"][0]["operator"] == "linear");
    CHECK(document["problems"][0]["problem"] == "n=16 k=512");
    REQUIRE(document["problems"][0]["charts"].size() == 1);
    const auto& chart = document["problems"][0]["charts"][0];
    CHECK(chart["basis"] == "model");
    CHECK(chart["candidates"].size() == 6);
    REQUIRE(chart["winners"].size() == 1);
    const auto& winner = chart["winners"][0];
    CHECK(winner["us"] == choice["winner"]["us"]);
    CHECK(winner["why"] == choice["why"]);
    CHECK(chart["candidates"][winner["candidate"].get<std::size_t>()]["constants"] ==
          choice["winner"]["bucket"]["constants"]);
    CHECK(winner["runner_up"]["us"] == choice["runner_up"]["us"]);
    CHECK(winner["limit"]["memory_us"].get<double>() > 0);

    const auto outcome = report({candidates, "-o", path("out/of/it")});
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out ==
          path("out/of/it/report.md") + " written\n" + path("out/of/it/report.html") + " written\n");
    const auto markdown = contents(path("out/of/it/report.md"));
    CHECK(markdown == report({candidates}).out);
    CHECK(markdown == report({candidates, "--markdown"}).out);
    CHECK(contains(markdown, "model, not measured"));
    CHECK_FALSE(contains(markdown, "measured, end to end"));
    const auto page = contents(path("out/of/it/report.html"));
    CHECK(page == report({candidates, "--html"}).out);
    CHECK(page.starts_with("<!DOCTYPE html>"));
    CHECK(contains(page, "model, not measured"));

    // The row that the tune made says so too, and both stand under one problem.
    const auto both = report({candidates, rows, "--json"}).json();
    REQUIRE(both["problems"].size() == 1);
    REQUIRE(both["problems"][0]["charts"].size() == 2);
    CHECK(both["problems"][0]["charts"][1]["basis"] == "model");
    CHECK(both["problems"][0]["charts"][1]["winners"][0]["us"] == choice["winner"]["us"]);
    CHECK(contains(both["problems"][0]["charts"][1]["where"], "rows.json:"));
}

TEST_CASE_FIXTURE(Desk, "MeasuredAndModelledFilesPutTogetherStayApart") {
    auto modelled = measured_line(4, 1, 7);
    modelled.replace(modelled.find("\"measured\""), 10, "\"model\"");
    const auto file = write("all.jsonl", measured_line(4, 1, 5) + measured_line(4, 2, 6) + modelled +
                                             measured_line(8, 2, 9) + R"({"schema":1,"rec)");
    const auto second = write("more.jsonl", measured_line(8, 1, 8));
    const auto charts = report({file, second, "--json"}).json()["problems"][0]["charts"];
    REQUIRE(charts.size() == 2);
    CHECK(charts[0]["basis"] == "measured");
    CHECK(charts[0]["candidates"].size() == 2);
    CHECK(charts[0]["winners"][1]["us"] == 8);
    CHECK(charts[1]["basis"] == "model");
    CHECK(charts[1]["candidates"][0]["points"].size() == 1);
    CHECK(charts[1]["candidates"][0]["points"][0]["us"] == 7);
}

TEST_CASE_FIXTURE(Desk, "ReportOfTablesTakesTheRowsThatSayTimes") {
    const auto shipped = report({std::string(KILN_TEST_SHAPES) + "/linear.json", "--json"});
    INFO(shipped.err);
    CHECK(shipped.exit_code == 0);
    const auto document = shipped.json();
    CHECK(document["problems"].size() == 11);  // those of sm_90a
    CHECK(document["rows_without_a_time"] == 11);
    for (const auto& problem : document["problems"]) {
        CHECK(problem["charts"][0]["basis"] == "measured");
        CHECK(contains(problem["charts"][0]["where"], "linear.json:"));
    }
    // Folders too; what the tables themselves name takes no other tables along.
    write("tables/a.json",
          table(R"({"kind": "measured", "device": "a GPU", "microseconds_at_max_m": [5.5]})"));
    write("tables/b.json", R"({"schema": 1, "rows": []})");
    const auto of_folder = report({path("tables"), "--json"}).json();
    REQUIRE(of_folder["problems"].size() == 1);
    CHECK(of_folder["problems"][0]["charts"][0]["winners"][0]["us"] == 5.5);
}

TEST_CASE_FIXTURE(Desk, "FilesThatSayNoTimeEndWithOneAndWriteNothing") {
    const auto untuned = write("untuned.json", table(R"({"kind": "untuned"})"));
    const auto outcome = report({untuned, "-o", path("out")});
    CHECK(outcome.exit_code == 1);
    CHECK(contains(outcome.err, "no row that says a time"));
    CHECK_FALSE(fs::exists(path("out")));
    CHECK(report({untuned, "--json"}).json()["rows_without_a_time"] == 1);
}

TEST_CASE_FIXTURE(Desk, "FilesThatAreNeitherAreNamed") {
    const auto expect = [&](const std::string& file, const std::string& said) {
        const auto outcome = report({file});
        INFO(outcome.err);
        CHECK(outcome.exit_code == 2);
        CHECK(outcome.out.empty());
        CHECK(contains(outcome.err, said));
    };
    expect(path("none.jsonl"), "none.jsonl");
    expect(write("empty.jsonl", ""), "expected candidates of kiln tune");
    expect(write("notes.txt", "my notes\n"), "notes.txt: expected candidates of kiln tune");
    expect(write("rows.csv", "gfx,cu_num\n"), "import-csv makes a table");
    expect(write("broken.json", "{\"schema\": 1, \"rows\": [}"), "broken.json:1:");
    expect(write("faulty.json", table(R"({"kind": "guessed"})")), "faulty.json:5:");
    expect(write("bad.jsonl", measured_line(4, 1, 5) + "{\"schema\": 1}\n"), "bad.jsonl:2: ");
    expect(write("newer.jsonl", "{\"schema\": 2, \"record\": \"candidate\"}\n"), "newer.jsonl:1: ");
    // One among several takes all along.
    CHECK(report({write("good.jsonl", measured_line(4, 1, 5)), path("bad.jsonl")}).exit_code == 2);
}

TEST_CASE_FIXTURE(Desk, "ReportNeverWritesOverAFile") {
    const auto file = write("good.jsonl", measured_line(4, 1, 5));
    write("out/report.html", "precious");
    const auto outcome = report({file, "-o", path("out")});
    CHECK(outcome.exit_code == 2);
    CHECK(contains(outcome.err, "expected no report.html in it, found one"));
    CHECK(contents(path("out/report.html")) == "precious");
    CHECK_FALSE(fs::exists(path("out/report.md")));
    CHECK(report({file, "-o", path("out"), "--markdown"}).exit_code == 0);
    CHECK(fs::exists(path("out/report.md")));

    CHECK(report({file, "-o", file + "/x"}).exit_code == 3);
    CHECK(report({}).exit_code == 2);
    const auto both = report({file, "--markdown", "--html"});
    CHECK(both.exit_code == 2);
    CHECK(contains(both.err, "--out FOLDER for both"));
}
