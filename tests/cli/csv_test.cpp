// kiln import-csv and export-csv as their users meet them, over the public rows and full rows written for the
// test.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "run_kiln.hpp"
#include "tests/tuned_config/support.hpp"

namespace fs = std::filesystem;
using kiln::test::contains;
using kiln::test::contents;
using kiln::test::run_kiln;
using kiln::test::TemporaryFolder;
using kiln::test::with;
using kiln::tuned_config::header;
using kiln::tuned_config::public_rows;
using kiln::tuned_config::row_text;
using kiln::tuned_config::tiles_of_32;
using nlohmann::json;

namespace {

std::set<std::string> lines_of(const std::string& text) {
    std::set<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        lines.insert(line);
    }
    return lines;
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
        ++found;
    }
    return found;
}

struct Desk {
    TemporaryFolder folder;
    kiln::test::Variables environment = {{"KILN_CACHE_DIR", (folder.path() / "cache").string()},
                                         {"KILN_DEVICE", "sim"}};
    // What the full rows of the test are about.
    const std::vector<std::string> problem = {"fused_moe",   "hidden=4096", "intermediate=512",
                                              "experts=512", "slots=10",    "weights=mxfp4"};

    std::string path(const std::string& name) const { return (folder.path() / name).string(); }
    std::string write(const std::string& name, const std::string& text) const {
        std::ofstream(path(name), std::ios::binary) << text;
        return path(name);
    }
    kiln::test::Outcome run(const std::vector<std::string>& arguments) const {
        return run_kiln(arguments, environment);
    }
    // What serves the problem with the table in the strongest layer.
    json explain(const std::string& table, const std::vector<std::string>& more) const {
        auto with_table = environment;
        with_table["KILN_SHAPES_PATH"] = table;
        return run_kiln(with(with({"explain", "--json"}, problem), more), with_table).json();
    }
};

}  // namespace

TEST_CASE_FIXTURE(Desk, "ThePublicRowsBecomeASoundTableAndComeBackToTheLetter") {
    const auto csv = write("public.csv", public_rows());
    const auto table = path("made/public.json");
    const auto imported = run({"import-csv", csv, "-o", table, "--json"});
    CHECK(imported.exit_code == 1);  // some have no counterpart: the others are in the table
    const auto document = imported.json();
    CHECK(document["file"] == table);
    CHECK(document["imported"] == 56);
    CHECK(document["timings"] == json{{"end_to_end", 14}, {"sum_of_stages", 42}});
    CHECK(document["table"] == json::parse(contents(table)));
    CHECK(document["table"]["rows"].size() == 6);
    REQUIRE(document["without_counterpart"].size() == 10);
    const auto lines = public_rows();
    std::vector<std::string> text;
    for (std::istringstream stream(lines); std::getline(stream, text.emplace_back());) {
    }
    auto wanted = lines_of(lines);
    for (const auto& left : document["without_counterpart"]) {
        const auto& line = text.at(left["line"].get<std::size_t>() - 1);
        const bool is_named = contains(left["reason"], "\"f4out\"") || contains(left["reason"], "\"xcd4\"");
        CHECK(is_named);
        CHECK((contains(line, "f4out") || contains(line, "xcd4")));
        CHECK(left["what"].get<std::string>().starts_with("token "));
        CHECK(wanted.erase(line) == 1);
    }
    // A person reads the same on stderr.
    CHECK(count(imported.err, csv + ":") == 10);
    CHECK(count(imported.err, ": no counterpart: token ") == 10);

    const auto checked = run({"check-table", table, "--json"});
    CHECK(checked.exit_code == 0);
    CHECK(checked.json()["well"] == true);
    CHECK(checked.json()["warnings"].empty());

    const auto exported = run({"export-csv", table});
    CHECK(exported.exit_code == 0);
    CHECK(exported.err.empty());
    CHECK(lines_of(exported.out) == wanted);
    CHECK(run({"export-csv", table, "-o", path("back.csv")}).out == path("back.csv") + " written: 56 rows\n");
    CHECK(contents(path("back.csv")) == exported.out);
    CHECK(run({"import-csv", path("back.csv"), "--json"}).json()["table"]["rows"].size() == 6);
}

TEST_CASE_FIXTURE(Desk, "SumsOfStagesAndTimesEndToEndAreKeptApart") {
    const auto csv =
        write("full.csv", header() + row_text() +
                              row_text({{"token", "32"}, {"us1", "50.5"}, {"us2", "49.5"}, {"us", "100.0"}}));
    const auto table = path("full.json");
    const auto imported = run({"import-csv", csv, "-o", table});
    INFO(imported.err);
    CHECK(imported.exit_code == 0);
    CHECK(imported.out == table + " written: 1 rows, from 2 of 2 rows of " + csv + "\n");
    const auto rows = json::parse(contents(table))["rows"][0]["provenance"]["rows"];
    CHECK(rows[0]["timing"] == "end_to_end");
    CHECK(rows[1]["timing"] == "sum_of_stages");

    const auto charts = run({"report", table, "--json"}).json()["problems"][0]["charts"];
    REQUIRE(charts.size() == 2);
    CHECK(charts[0]["basis"] == "imported_end_to_end");
    CHECK(charts[0]["winners"][0]["us"] == 92.1512);
    CHECK(charts[1]["basis"] == "imported_sum_of_stages");
    CHECK(charts[1]["winners"][0]["us"] == 100.0);

    // Without -o the table itself is what is printed.
    CHECK(run({"import-csv", csv}).out == contents(table));
}

TEST_CASE_FIXTURE(Desk, "ImportedRowsServeDevicesOfTheirComputeUnitsAlone") {
    const auto csv =
        write("two.csv",
              header() + row_text() +
                  row_text({{"cu_num", "64"}, {"kernelName2", "flydsl_mxmoe_g2_a4w4_16x256x256_atomic_nt"}}) +
                  row_text({{"cu_num", ""}, {"kernelName2", "flydsl_mxmoe_g2_a4w4_16x256x256"}}));
    const auto table = path("two.json");
    REQUIRE(run({"import-csv", csv, "-o", table}).exit_code == 0);
    const auto constants = [&](const std::vector<std::string>& more) {
        const auto said = explain(table, with({"--m", "16"}, more));
        CHECK(said["template"] == "fused_moe/mxmoe");
        return std::pair(said["constants"]["g2"].get<int>(), said["constants"]["g2_nt"].get<int>());
    };
    CHECK(constants({"--cu-num", "256"}) == std::pair(0, 0));
    CHECK(constants({"--cu-num", "64"}) == std::pair(0, 1));
    CHECK(constants({"--cu-num", "304"}) == std::pair(1, 0));
    CHECK(explain(table, {"--m", "16", "--cu-num", "64"})["row"]["cu_num"] == 64);

    // What does not say its number gets the one that is asked for, unless it came from a file and is as it
    // was.
    CHECK(run({"export-csv", table, "--cu-num", "304"}).out == contents(csv));
    for (const auto* wrong : {"0", "2147483648"}) {
        const auto refused = run({"export-csv", table, "--cu-num", wrong});
        CAPTURE(wrong);
        CHECK(refused.exit_code == 2);
        CHECK(contains(refused.err, wrong));
    }
}

TEST_CASE_FIXTURE(Desk, "FillTakesWhatServesNowWhereTheFileSaysNothing") {
    const auto present = path("present.json");
    REQUIRE(run(with(with({"suggest", "--again"}, problem), {"--out", present})).exit_code == 0);
    environment["KILN_SHAPES_PATH"] = present;
    const auto csv = write("rows.csv", header() + row_text({{"token", "32"}}) + row_text({{"token", "128"}}));

    const auto plain = run({"import-csv", csv, "--json", "-o", path("plain.json")});
    CHECK(plain.exit_code == 0);
    CHECK(plain.json()["gaps"].size() == 2);
    CHECK(plain.json()["gaps"][1]["from"] == 33);
    CHECK(plain.json()["gaps"][1]["to"] == 64);
    CHECK(contains(plain.err, "no row for M from 1 to 16; what serves 32 serves there"));

    const auto filled = run({"import-csv", csv, "--json", "--fill", "-o", path("filled.json")});
    CHECK(filled.exit_code == 0);
    CHECK(filled.json()["gaps"].empty());
    CHECK(run({"check-table", path("filled.json")}).exit_code == 0);
    const auto row = json::parse(contents(path("filled.json")))["rows"][0];
    CHECK(contains(row["provenance"]["note"], "present.json"));

    const auto template_at = [&](const std::string& table, const std::string& m) {
        return explain(path(table), {"--m", m, "--cu-num", "256"});
    };
    CHECK(template_at("plain.json", "1")["template"] == "fused_moe/mxmoe");
    CHECK(template_at("filled.json", "1")["template"] == "fused_moe/small_m");
    const auto imported = template_at("filled.json", "32");
    CHECK(imported["template"] == "fused_moe/mxmoe");
    CHECK(imported["constants"]["g2"] == 0);

    // The file's kernels add in any order; who demands the same bits gets what served that before.
    const auto demanding = [&](const std::string& table) {
        return explain(path(table), {"deterministic=1", "--m", "32", "--cu-num", "256"});
    };
    CHECK(demanding("plain.json")["served"] == false);
    CHECK(demanding("filled.json")["served"] == true);
    CHECK(demanding("filled.json")["constants"] != imported["constants"]);

    // Only what the file says goes back into one.
    const auto exported = run({"export-csv", path("filled.json")});
    CHECK(lines_of(contents(csv)).size() == 3);
    for (const auto& line : lines_of(contents(csv))) {
        CHECK(lines_of(exported.out).contains(line));
    }
}

TEST_CASE_FIXTURE(Desk, "ExportListsBucketsThatTheFormHasNoWordsFor") {
    const auto table = path("suggested.json");
    REQUIRE(run(with(with({"suggest", "--again"}, problem), {"--out", table})).exit_code == 0);
    const auto outcome = run({"export-csv", table, "--json"});
    CHECK(outcome.exit_code == 1);
    const auto document = outcome.json();
    REQUIRE(!document["without_counterpart"].empty());
    CHECK(document["without_counterpart"][0]["reason"] == "no name of the form stands for fused_moe/small_m");
    CHECK(document["without_counterpart"][0]["origin"].get<std::string>().starts_with(table + ":"));
    CHECK(contains(outcome.err, ": no counterpart: max_m "));
    CHECK(document["csv"].get<std::string>().starts_with(header()));

    const auto shipped = run({"export-csv", "--json"}).json();
    CHECK(shipped["rows_of_other_operators"].get<int>() > 0);
}

TEST_CASE_FIXTURE(Desk, "RowsWithoutACounterpartAreListedAndAloneMakeNoTable") {
    const auto csv = write("other.csv", header() + row_text({{"act_type", "ActivationType.Gelu"}}) +
                                            row_text({{"model_dim", "4000"}, {"cu_num", "64"}}));
    const auto outcome = run({"import-csv", csv, "-o", path("other.json")});
    CHECK(outcome.exit_code == 1);
    CHECK(contains(outcome.err,
                   csv + ":2: no counterpart: token 16 of model_dim=4096 inter_dim=512 expert=512 topk=10: "
                         "act_type: "));
    CHECK(contains(outcome.err, csv + ":3: no counterpart: token 16 of model_dim=4000 "));
    CHECK(contains(outcome.err, "no row has a counterpart here; nothing was written"));
    CHECK_FALSE(fs::exists(path("other.json")));
    CHECK(run({"import-csv", csv, "--json"}).json()["table"].is_null());
}

TEST_CASE_FIXTURE(Desk, "FaultyFilesAndNamesThatAreTakenLoseNothing") {
    const auto faulty =
        write("faulty.csv", header() + row_text({{"us", "fast"}}) + row_text({{"token", "-1"}}));
    const auto outcome = run({"import-csv", faulty, "-o", path("faulty.json")});
    CHECK(outcome.exit_code == 2);
    CHECK(contains(outcome.err, faulty + ":2:"));
    CHECK(contains(outcome.err, faulty + ":3:"));
    CHECK_FALSE(fs::exists(path("faulty.json")));
    CHECK(run({"import-csv", path("none.csv")}).exit_code == 2);

    const auto sound = write("sound.csv", header() + row_text(tiles_of_32("32")));
    const auto taken = write("taken", "precious");
    for (const auto& arguments :
         {std::vector<std::string>{"import-csv", sound, "-o", taken}, {"export-csv", "-o", taken}}) {
        const auto refused = run(arguments);
        CHECK(refused.exit_code == 2);
        CHECK(contains(refused.err, "expected no file of that name, found one"));
        CHECK(contents(taken) == "precious");
        auto below = arguments;
        below.back() += "/x";
        CHECK(run(below).exit_code == 3);
    }
    CHECK(run({"export-csv", sound}).exit_code == 2);  // no table
}
