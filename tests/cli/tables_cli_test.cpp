// The commands about shape tables, as their users meet them.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "run_kiln.hpp"

using kiln::test::contains;
using kiln::test::contents;
using kiln::test::run_kiln;
using kiln::test::TemporaryFolder;

namespace fs = std::filesystem;

namespace {

struct Machine {
    TemporaryFolder folder;
    std::map<std::string, std::string> environment = {
        {"KILN_CACHE_DIR", (folder.path() / "cache").string()},
        {"KILN_DEVICE", "sim"},
        {"XDG_CONFIG_HOME", (folder.path() / "config").string()}};

    std::string path(const std::string& name) const { return (folder.path() / name).string(); }
    std::string write(const std::string& name, const std::string& text) const {
        fs::create_directories((folder.path() / name).parent_path());
        std::ofstream(path(name)) << text;
        return path(name);
    }
    kiln::test::Outcome run(const std::vector<std::string>& arguments) const {
        return run_kiln(arguments, environment);
    }
};

std::string table(const std::string& target, const std::string& constants) {
    return R"({"schema": 1, "rows": [
  {"operator": "linear", "problem": {"n": 16, "k": 128}, "target": ")" +
           target + R"(",
   "buckets": [{"max_m": 16, "template": "linear/small_m", "constants": )" +
           constants + R"(}],
   "provenance": {"kind": "untuned"}}]})";
}

const std::string kSound = R"({"tiles_n": 1, "waves": 1, "lane_rows": 16, "blocks_ahead": 1})";

}  // namespace

TEST_CASE_FIXTURE(Machine, "CheckTableListsEveryFaultWithItsPlace") {
    const auto first = write("first.json", table("gfx95o", R"({"tiles_n": 3, "waves": 1, "lane_rows": 16})"));
    const auto second = write("second.json", "{\"schema\": 1, \"rows\": [}");
    const auto spoken = run({"check-table", first, second, path("none.json")});
    CHECK(spoken.exit_code == 2);
    CHECK(contains(
        spoken.out,
        first + ":3:73: /rows/0/buckets/0/constants: expected the constant blocks_ahead, found none"));
    CHECK(
        contains(spoken.out,
                 first + ":2:68: /rows/0/target: expected a processor that there is; the nearest is gfx950"));
    CHECK(contains(spoken.out, second + ":1:24: "));
    CHECK(contains(spoken.out, path("none.json") + ":1:1: "));
    CHECK(contains(spoken.out, "not well: 2 files, 0 sound rows, 4 faults, 0 warnings"));
    CHECK(spoken.err.empty());

    const auto outcome = run({"check-table", "--json", first, second, path("none.json")});
    CHECK(outcome.exit_code == 2);
    const auto document = outcome.json();
    CHECK(document["well"] == false);
    REQUIRE(document["faults"].size() == 4);
    const auto& fault = document["faults"][2];
    CHECK(fault["file"] == first);
    CHECK(fault["line"] == 3);
    CHECK(fault["column"] == 73);
    CHECK(fault["pointer"] == "/rows/0/buckets/0/constants");
    CHECK(fault["expected"] == "the constant blocks_ahead");
    CHECK(fault["found"] == "none");
    CHECK(document["layers"].size() == 2);
}

TEST_CASE_FIXTURE(Machine, "CheckTableWithoutATableLooksAtEveryLayer") {
    const auto shipped = run({"check-table", "--json"});
    CHECK(shipped.exit_code == 0);
    CHECK(shipped.json()["well"] == true);
    CHECK(shipped.json()["layers"].back()["layer"] == "shipped");

    const auto user = write("config/kiln/shapes/mine.json", table("gfx942", kSound));
    const auto warned = run({"check-table", "--json"});
    CHECK(warned.exit_code == 0);
    CHECK(warned.json()["layers"][0]["layer"] == "user");
    CHECK(warned.json()["layers"][0]["files"][0] == user);
    REQUIRE(warned.json()["warnings"].size() == 1);
    CHECK(warned.json()["warnings"][0]["pointer"] == "/rows/0/target");

    // The other commands refuse what this one lists, and it still does.
    write("config/kiln/shapes/mine.json", table("gfx950", "{}"));
    CHECK(run({"explain", "linear", "n=16", "k=128", "--m", "1"}).exit_code == 2);
    CHECK(run({"check-table"}).exit_code == 2);
}

TEST_CASE_FIXTURE(Machine, "ExplainNamesTheFileThatWonAndWhatItHides") {
    const auto user = write("config/kiln/shapes/mine.json", table("gfx950", kSound));
    environment["KILN_SHAPES_PATH"] = write("named.json", table("gfx950", kSound));
    const auto document = run({"explain", "--json", "linear", "n=16", "k=128", "--m", "1"}).json();
    CHECK(document["row"]["file"] == path("named.json"));
    CHECK(document["row"]["line"] == 2);
    CHECK(document["row"]["layer"] == "named");
    REQUIRE(document["shadowed"].size() == 1);
    CHECK(document["shadowed"][0]["origin"] == user + ":2");
    CHECK(document["shadowed"][0]["layer"] == "user");
    CHECK(document["shadowed"][0]["why"] == "another row goes before it");
    const auto spoken = run({"explain", "linear", "n=16", "k=128", "--m", "1"});
    CHECK(contains(spoken.out, "hides      " + user + ":2 (user), for gfx950, another row goes before it"));
}

TEST_CASE_FIXTURE(Machine, "ExplainNamesTheTemplateThatMChoosesAndTheRow") {
    const auto mine = write("config/kiln/shapes/mine.json", R"({"schema": 1, "rows": [
{"operator": "fused_moe", "problem": {"hidden": 4096, "intermediate": 512, "experts": 512, "slots": 10},
 "target": "gfx950", "provenance": {"kind": "untuned"}, "buckets": [
 {"max_m": 8, "template": "fused_moe/small_m",
  "constants": {"columns": 16, "gate_up_waves": 4, "row_tiles": 1, "down_waves": 8}},
 {"max_m": 128, "template": "fused_moe/mxmoe",
  "constants": {"block_m": 16, "f16in": 1, "g1_nt": 1, "g2": 0, "g2_nt": 0}},
 {"max_m": 128, "template": "fused_moe/mxmoe",
  "constants": {"block_m": 32, "f16in": 0, "g1_nt": 1, "g2": 1, "g2_nt": 0}}]}]})");
    const std::vector<std::string> problem = {"fused_moe", "hidden=4096", "intermediate=512", "experts=512",
                                              "slots=10"};
    const auto explain = [&](const std::vector<std::string>& more) {
        return run(kiln::test::with(kiln::test::with({"explain"}, problem), more));
    };
    const auto templates = [&](const std::vector<std::string>& more) {
        const auto document = explain(kiln::test::with({"--json"}, more)).json();
        CHECK(document["row"]["file"] == mine);
        CHECK(document["row"]["line"] == 2);
        std::vector<std::string> all = {document["template"]};
        for (const auto& stage : document["stages"]) {
            all.push_back(stage["template"]);
            CHECK(stage["cached"] == false);
        }
        return all;
    };
    using Ids = std::vector<std::string>;
    CHECK(templates({"--m", "8"}) == Ids{"fused_moe/small_m", "fused_moe/small_m"});
    CHECK(templates({"--m", "9"}) ==
          Ids{"fused_moe/mxmoe", "moe_sort/general", "fused_moe/mxmoe_g1", "fused_moe/mxmoe_g2"});
    CHECK(templates({"--m", "128", "deterministic=1"}) ==
          Ids{"fused_moe/mxmoe", "moe_sort/general", "fused_moe/mxmoe_quantise", "fused_moe/mxmoe_g1",
              "fused_moe/mxmoe_g2", "fused_moe/mxmoe_combine"});
    const auto spoken = explain({"--m", "64", "deterministic=1"});
    CHECK(contains(spoken.out, "row        " + mine + ":2 (user)"));
    CHECK(contains(spoken.out,
                   "passes by  bucket 1, up to M = 128: fused_moe/mxmoe with these constants is not "
                   "deterministic, which the problem demands"));
    CHECK(contains(spoken.out, "template   fused_moe/mxmoe block_m=32"));
    CHECK(contains(spoken.out, "stage      fused_moe/mxmoe_g2, kiln_fused_moe_mxmoe_g2"));
}

TEST_CASE_FIXTURE(Machine, "RowsForSoManyComputeUnitsServeThoseAlone") {
    auto part = table("gfx950", kSound);
    part.insert(part.find("\"buckets\""), "\"cu_num\": 64, ");
    const auto whole = write("tables/a.json", table("gfx950", kSound));
    const auto small = write("tables/b.json", part);
    environment["KILN_SHAPES_PATH"] = path("tables");
    const auto explain = [&](std::vector<std::string> more) {
        more.insert(more.begin(), {"explain", "linear", "n=16", "k=128", "--m", "1", "--json"});
        return run(more).json();
    };
    CHECK(explain({})["row"]["file"] == whole);
    CHECK(explain({"--cu-num", "256"})["row"]["file"] == whole);
    const auto chosen = explain({"--cu-num", "64"});
    CHECK(chosen["row"]["file"] == small);
    CHECK(chosen["row"]["cu_num"] == 64);
    CHECK(chosen["shadowed"][0]["why"] == "less specific");
    CHECK(explain({})["key"] == chosen["key"]);  // the same code serves both
    const auto spoken = run({"explain", "linear", "n=16", "k=128", "--m", "1", "--cu-num", "64"});
    CHECK(contains(spoken.out, small + ":2 (named), for gfx950 with 64 compute units"));
    CHECK(run({"explain", "linear", "n=16", "k=128", "--m", "1", "--cu-num", "0"}).exit_code == 2);

    // One that is alone serves nobody else; the simulator has 256.
    CHECK(run({"verify", small, "--m", "1"}).exit_code == 2);
    const auto warm = [&](std::vector<std::string> more) {
        more.insert(more.begin(), {"warm", "--dry-run", "--json", small});
        return run(more);
    };
    CHECK(warm({}).json()["items"].size() == 1);
    CHECK(warm({"--target", "gfx950"}).exit_code == 2);
    CHECK(warm({"--target", "gfx950", "--cu-num", "64"}).json()["items"].size() == 1);
    CHECK(contains(warm({"--cu-num", "64"}).err, "--cu-num: expected --target"));
}

TEST_CASE_FIXTURE(Machine, "ExplainNamesTheGeneralRowAndWhatItAdmits") {
    const auto general = write("general.json", R"({"schema": 1, "rows": [
{"operator": "linear", "problem": {"n": {"min": 32, "max": 4096}, "k": 128}, "target": "gfx950",
 "problems": [{"n": 64}],
 "buckets": [{"max_m": 16, "template": "linear/small_m",
              "constants": {"tiles_n": 2, "waves": 1, "lane_rows": 16, "blocks_ahead": 1},
              "budget": {"lds_bytes": 4096}}],
 "provenance": {"kind": "untuned"}}]})");
    environment["KILN_SHAPES_PATH"] = general;
    const auto document = run({"explain", "--json", "linear", "n=96", "k=128", "--m", "1"}).json();
    CHECK(document["row"]["origin"] == general + ":2");
    CHECK(document["row"]["admits"] == "n=32..4096");
    CHECK(document["kernel"] == "kiln_linear_n96_k128_m16");
    CHECK(document["launches"][0]["grid"] == std::vector<int>{3, 1, 1});
    CHECK(document["workspace"]["scratch_bytes"] == 0);
    CHECK(document["budget"]["lds_bytes"] == 4096);
    const auto spoken = run({"explain", "linear", "n=96", "k=128", "--m", "1"});
    CHECK(contains(spoken.out, "general    admits n=32..4096"));
    CHECK(contains(spoken.out, "budget     lds_bytes 4096"));

    // Warming takes the problems that it lists, and one that is spelt out.
    const auto wanted = [&](std::vector<std::string> words) {
        words.insert(words.begin(), {"warm", "--json", "--dry-run", "--target", "gfx950"});
        return run(words).json()["items"];
    };
    CHECK(wanted({general}).size() == 1);
    CHECK(wanted({general})[0]["problem"]["n"] == 64);
    CHECK(wanted({general, "linear", "n=2048", "k=128"})[0]["problem"]["n"] == 2048);
}

TEST_CASE_FIXTURE(Machine, "TablesThatAreNamedTakeThePlaceOfAllOthers") {
    write("config/kiln/shapes/broken.json", "{");
    write("tables/a.json", table("gfx950", kSound));
    // Not even a broken table of the user's matters then, and a folder is a table's name too.
    const auto outcome = run({"warm", "--json", path("tables") + "/"});
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.json()["items"].size() == 1);
}

TEST_CASE_FIXTURE(Machine, "SuggestedTablesPassTheCheckCompileAndComputeRightly") {
    // The smallest; K no power of two; N no multiple of 128, nor of a whole number of work-groups; primes.
    const std::pair<int, int> problems[] = {{16, 128},    {48, 384},       {208, 1152},
                                            {1040, 2176}, {16 * 257, 128}, {5136, 256}};
    fs::create_directories(path("tables"));
    for (const auto& [n, k] : problems) {
        const auto outcome = run({"suggest", "linear", "n=" + std::to_string(n), "k=" + std::to_string(k),
                                  "--out", path("tables/" + std::to_string(n) + ".json")});
        INFO(outcome.err);
        CHECK(outcome.exit_code == 0);
    }
    const auto checked = run({"check-table", "--json", path("tables")});
    CHECK(checked.exit_code == 0);
    CHECK(checked.json()["layers"][0]["rows"] == std::size(problems));
    const auto warmed = run({"warm", "--json", path("tables")});
    INFO(warmed.err);
    CHECK(warmed.exit_code == 0);
    CHECK(warmed.json()["summary"]["compiled"] == 4 * std::size(problems));
    const auto verified = run({"verify", "--json", "--m", "1,5,16,32", path("tables")});
    INFO(verified.err);
    CHECK(verified.exit_code == 0);
    CHECK(verified.json()["summary"]["passed"] == 4 * std::size(problems));
    CHECK(verified.json()["summary"]["compiled"] == 0);
}

TEST_CASE_FIXTURE(Machine, "SuggestAndOneEditServeANewModel") {
    const auto problem = {"linear", "n=48", "k=384"};
    const auto explain = [&] {
        std::vector<std::string> words = {"explain", "--json", "--m", "1"};
        words.insert(words.end(), problem.begin(), problem.end());
        return run(words).json();
    };
    CHECK(explain()["declined"]["reason"] == "shape");
    const auto suggested = run({"suggest", "linear", "n=48", "k=384"});
    CHECK(suggested.exit_code == 0);
    CHECK(suggested.err.empty());
    // Folders that are not there yet are made.
    const auto mine = path("config/kiln/shapes/model.json");
    CHECK(run({"suggest", "linear", "n=48", "k=384", "--out", mine}).exit_code == 0);
    CHECK(contents(mine) == suggested.out);
    CHECK(explain()["row"]["file"] == mine);
    CHECK(explain()["row"]["provenance"]["kind"] == "derived");

    // Served now: no row is written, and the one that serves is named.
    const auto again = run({"suggest", "--json", "linear", "n=48", "k=384"});
    CHECK(again.exit_code == 0);
    CHECK(again.json()["served"] == true);
    CHECK(again.json()["row"]["origin"] == mine + ":4");
    const auto spoken = run({"suggest", "linear", "n=48", "k=384"});
    CHECK(spoken.out.empty());
    CHECK(contains(spoken.err,
                   "is served: by " + mine + ":4 (user), for gfx950, derived; nothing was written"));
    const auto unwritten = run({"suggest", "linear", "n=48", "k=384", "--out", path("other.json")});
    CHECK(unwritten.exit_code == 0);
    CHECK(contains(unwritten.err, path("other.json") + " was not written"));
    CHECK(!fs::exists(path("other.json")));
    CHECK(run({"suggest", "--again", "linear", "n=48", "k=384"}).out == suggested.out);
}

TEST_CASE_FIXTURE(Machine, "AGeneralRowServesNothingThatItHasNoBucketFor") {
    const auto declined = run({"suggest", "--json", "moe_sort", "experts=1025", "slots=2", "block_m=32"});
    CHECK(declined.exit_code == 1);
    CHECK(declined.json()["declined"]["reason"] == "dimensions");

    const auto table = write("general.json", R"({"schema": 1, "rows": [
{"operator": "moe_sort", "problem": {"experts": "*", "slots": "*", "block_m": 32}, "target": "gfx950",
 "buckets": [{"max_pairs": 3, "template": "moe_sort/compact", "constants": {}}],
 "provenance": {"kind": "untuned"}}]})");
    fs::create_directories(path("config/kiln/shapes"));
    fs::copy_file(table, path("config/kiln/shapes/general.json"));
    const auto served = run({"suggest", "--json", "moe_sort", "experts=8", "slots=3", "block_m=32"});
    CHECK(served.json()["served"] == true);
    const auto row = run({"suggest", "--json", "moe_sort", "experts=8", "slots=4", "block_m=32"});
    CHECK(row.exit_code == 0);
    CHECK(row.json()["served"] == false);

    // Nothing to warm: the message says why of the row that seems to fit.
    const auto whole = run({"warm", "--dry-run", table, "moe_sort", "experts=8", "slots=4", "block_m=32"});
    CHECK(whole.exit_code == 2);
    CHECK(contains(whole.err, "expected one that holds M = 1"));
    const auto open = run({"warm", "--dry-run", table});
    CHECK(open.exit_code == 2);
    CHECK(contains(open.err, "lists no problems"));
    const auto verified = run({"verify", table});
    CHECK(verified.exit_code == 2);
    CHECK(contains(verified.err, "lists no problems"));
}

TEST_CASE_FIXTURE(Machine, "SuggestSaysWhyItWritesNothing") {
    const auto there = write("there.json", "precious");
    const auto exists = run({"suggest", "linear", "n=48", "k=384", "--out", there});
    CHECK(exists.exit_code == 2);
    CHECK(contains(exists.err, "expected no file of that name, found one"));
    CHECK(contents(there) == "precious");

    CHECK(run({"suggest", "linear", "n=48", "k=384", "--out", there + "/x.json"}).exit_code == 3);
    const auto processor = run({"suggest", "linear", "n=48", "k=384", "--target", "gfx942"});
    CHECK(processor.exit_code == 2);
    CHECK(contains(processor.err, "gfx942"));
    const auto declined = run({"suggest", "--json", "linear", "n=50", "k=384"});
    CHECK(declined.exit_code == 1);
    CHECK(declined.json()["declined"]["reason"] == "dimensions");
    CHECK(run({"suggest", "linear", "n=48"}).exit_code == 2);

    const auto document =
        run({"suggest", "--json", "linear", "n=48", "k=384", "--target", "gfx950:xnack-"}).json();
    CHECK(document["served"] == false);
    CHECK(document["table"]["rows"][0]["target"] == "gfx950:xnack-");
}
