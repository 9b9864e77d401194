// The program as its users meet it: real compiles, a real cache, the simulator.

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "run_kiln.hpp"

using kiln::test::contains;
using kiln::test::run_kiln;
using kiln::test::TemporaryFolder;
using kiln::test::with;

namespace {

const std::vector<std::string> kProblem = {"linear", "n=4096", "k=2048"};

// One warm cache for the tests that only read it.
const std::map<std::string, std::string>& warm_cache() {
    static const TemporaryFolder folder;
    static const std::map<std::string, std::string> environment = [] {
        std::map<std::string, std::string> made = {{"KILN_CACHE_DIR", folder.path().string()},
                                                   {"KILN_DEVICE", "sim"}};
        const auto warmed = run_kiln(with({"warm", "--json"}, kProblem), made);
        INFO(warmed.err);
        REQUIRE(warmed.exit_code == 0);
        return made;
    }();
    return environment;
}

}  // namespace

TEST_CASE("WarmCompilesOnceAndFindsTheRestInTheCache") {
    const TemporaryFolder folder;
    const std::map<std::string, std::string> environment = {{"KILN_CACHE_DIR", folder.path().string()}};
    const auto first = run_kiln(with({"warm", "--json"}, kProblem), environment);
    REQUIRE(first.exit_code == 0);
    const auto summary = first.json()["summary"];
    const auto specialisations = summary["compiled"].get<int>();
    CHECK(specialisations >= 1);
    CHECK(summary["hits"] == 0);
    CHECK(summary["failed"] == 0);
    CHECK(first.json()["items"].size() == static_cast<std::size_t>(specialisations));

    const auto second = run_kiln(with({"warm", "--json"}, kProblem), environment);
    CHECK(second.exit_code == 0);
    CHECK(second.json()["summary"]["compiled"] == 0);
    CHECK(second.json()["summary"]["hits"] == specialisations);

    const auto spoken = run_kiln(with({"warm"}, kProblem), environment);
    CHECK(contains(spoken.out, "nothing to compile"));
}

TEST_CASE("WarmDryRunAndCheckCompileNothingAndSayWhatWould") {
    const TemporaryFolder folder;
    const std::map<std::string, std::string> environment = {{"KILN_CACHE_DIR", folder.path().string()}};
    const auto before = run_kiln(with({"warm", "--json", "--dry-run"}, kProblem), environment);
    REQUIRE(before.exit_code == 0);
    const auto missing = before.json()["summary"]["missing"].get<int>();
    CHECK(missing >= 2);
    CHECK(before.json()["summary"]["hits"] == 0);
    CHECK(before.json()["items"].size() == static_cast<std::size_t>(missing));
    CHECK(before.json()["items"][0]["missing"] == true);
    const auto gate = run_kiln(with({"warm", "--check"}, kProblem), environment);
    CHECK(gate.exit_code == 1);
    CHECK(contains(gate.out, "to compile"));
    CHECK(run_kiln({"ls", "--json"}, environment).json()["entries"].empty());

    // One of them alone is not enough.
    REQUIRE(run_kiln(with({"warm", "--jobs", "1"}, kProblem), environment).exit_code == 0);
    const auto passed = run_kiln(with({"warm", "--json", "--check"}, kProblem), environment);
    CHECK(passed.exit_code == 0);
    CHECK(passed.json()["summary"]["missing"] == 0);
    CHECK(passed.json()["summary"]["hits"] == missing);
    CHECK(passed.json()["items"][0]["source"] == "cache");
    CHECK(run_kiln({"warm", "--json", "--check", "linear"}, environment).exit_code == 1);

    // Without a compiler what is there serves, whoever compiled it; what is not there is still missing.
    auto bare = environment;
    bare.emplace("KILN_WORKER", (folder.path() / "none").string());
    CHECK(run_kiln(with({"warm", "--check"}, kProblem), bare).exit_code == 0);
    CHECK(run_kiln({"warm", "--check", "linear"}, bare).exit_code == 1);
    auto forbidden = environment;
    forbidden.emplace("KILN_JIT", "off");
    CHECK(run_kiln(with({"warm", "--check"}, kProblem), forbidden).exit_code == 0);
    CHECK(run_kiln({"warm", "--check", "linear"}, forbidden).exit_code == 1);
}

TEST_CASE("WarmAsksForWhatAServiceOfThisEnvironmentServes") {
    const auto check = [](const std::string& name, const std::string& value) {
        auto environment = warm_cache();
        environment[name] = value;
        return run_kiln(with({"warm", "--json", "--check"}, kProblem), environment);
    };
    CHECK(check("KILN_TARGET", "gfx950").exit_code == 0);
    for (const char* target : {"gfx942", "GFX?"}) {
        const auto other = check("KILN_TARGET", target);
        CHECK(other.exit_code == 2);
        CHECK(contains(other.err, target));
    }
    for (const char* name : {"linear", "linear/small_m"}) {
        const auto off = check("KILN_DISABLE", name);
        CHECK(off.exit_code == 1);
        CHECK(contains(off.err, "KILN_DISABLE switches them off"));
        CHECK(off.json()["summary"]["switched_off"] > 0);
        CHECK(off.json()["items"].empty());
    }
    auto environment = warm_cache();
    environment["KILN_DISABLE"] = "linear";
    CHECK(run_kiln(with({"warm"}, kProblem), environment).exit_code == 0);
}

TEST_CASE("CheckWithoutACacheFindsEverythingMissing") {
    const TemporaryFolder folder;
    std::ofstream(folder.path() / "file") << "x";
    const auto outcome = run_kiln(with({"warm", "--json", "--check"}, kProblem),
                                  {{"KILN_CACHE_DIR", (folder.path() / "file").string()}});
    CHECK(outcome.exit_code == 1);
    CHECK(outcome.json()["summary"]["hits"] == 0);
}

TEST_CASE("WarmTakesSeveralProblemsAndCountsEachSpecialisationOnce") {
    const auto once = run_kiln(with({"warm", "--json"}, kProblem), warm_cache());
    const auto twice = run_kiln(with(with({"warm", "--json"}, kProblem), kProblem), warm_cache());
    CHECK(twice.json()["summary"]["hits"] == once.json()["summary"]["hits"]);
}

TEST_CASE("WarmTakesNoProblemThatNothingServesBesideOneThatIsServed") {
    const TemporaryFolder folder;
    const auto bundle = folder.path() / "x";
    const std::vector<std::string> unserved = {"linear", "n=48", "k=384"};
    for (const auto& command : {std::vector<std::string>{"warm"},
                                {"warm", "--check"},
                                {"bundle", "create", "-o", bundle.string()}}) {
        for (const auto& problems : {with(kProblem, unserved), with(unserved, kProblem)}) {
            const auto outcome =
                run_kiln(with(with(command, {"--target", "gfx950"}), problems), warm_cache());
            CHECK(outcome.exit_code == 2);
            CHECK(contains(outcome.err, "no row of the shape tables is linear n=48 k=384 for gfx950"));
        }
    }
    CHECK(!std::filesystem::exists(bundle));
}

TEST_CASE("VerifyComparesWithTheReferenceAndCounts") {
    const auto outcome = run_kiln(with({"verify", "--json", "--m", "1,8"}, kProblem), warm_cache());
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    const auto document = outcome.json();
    CHECK(document["summary"]["passed"] == 2);
    CHECK(document["summary"]["failed"] == 0);
    CHECK(document["summary"]["compiled"] == 0);
    REQUIRE(document["cases"].size() == 2);
    for (const auto& one : document["cases"]) {
        CHECK(one["operator"] == "linear");
        CHECK(one["problem"]["n"] == 4096);
        CHECK(one["template"] == "linear/small_m");
        CHECK(one["source"] == "cache");
        CHECK(one["error"].get<double>() <= one["bound"].get<double>());
        CHECK(one["counts"]["instructions"].get<int>() > 0);
        CHECK(one["counts"]["mfma"].get<int>() > 0);
        CHECK(one["replayed"] == true);
    }
    CHECK(document["device"]["simulated"] == true);
}

TEST_CASE("VerifySanitizedRunsUnderEveryOrderAndBothExtremesOfVisibility") {
    const auto outcome =
        run_kiln(with({"verify", "--json", "--sanitize", "--seed", "9", "--m", "3"}, kProblem), warm_cache());
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    const auto document = outcome.json();
    CHECK(document["summary"]["passed"] == 1);
    REQUIRE(document["sanitize"].size() == 12);
    CHECK(document["sanitize"][0]["order"] == "ascending");
    CHECK(document["sanitize"][0]["scopes"] == "early");
    CHECK(document["sanitize"][11]["order"] == "interleave:11");
    CHECK(document["sanitize"][11]["scopes"] == "late");
    // What a case counts does not depend on it.
    const auto plain = run_kiln(with({"verify", "--json", "--m", "3"}, kProblem), warm_cache()).json();
    CHECK(plain["sanitize"].empty());
    CHECK(plain["cases"][0]["counts"] == document["cases"][0]["counts"]);
}

TEST_CASE("VerifySanitizedHoldsWhereWorkGroupsWaitForEachOther") {
    const TemporaryFolder folder;
    const auto table = (folder.path() / "mine.json").string();
    std::ofstream(table) << R"({"schema": 1, "rows": [
{"operator": "router", "problem": {"hidden": 1024, "experts": 100, "top_k": 6}, "target": "gfx950",
 "buckets": [{"max_m": 4, "template": "router/one_launch", "constants": {"rows": 2, "waves": 2}}],
 "provenance": {"kind": "untuned"}},
{"operator": "moe_sort", "problem": {"experts": 16, "slots": 4, "block_m": 16}, "target": "gfx950",
 "buckets": [{"max_m": 4, "template": "moe_sort/distributed", "constants": {}}],
 "provenance": {"kind": "untuned"}}]})";
    const auto outcome = run_kiln({"verify", "--json", "--sanitize", "--m", "3", table}, warm_cache());
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    const auto document = outcome.json();
    CHECK(document["summary"]["passed"] == 2);
    CHECK(document["sanitize"].size() == 12);
    REQUIRE(document["cases"].size() == 2);
    CHECK(document["cases"][0]["operator"] == "router");
    CHECK(document["cases"][1]["operator"] == "moe_sort");
}

TEST_CASE("VerifyCountsEachStageOfAPipeline") {
    const TemporaryFolder folder;
    const auto table = (folder.path() / "mine.json").string();
    std::ofstream(table) << R"({"schema": 1, "rows": [
{"operator": "fused_moe", "problem": {"hidden": 256, "intermediate": 256, "experts": 300, "slots": 2},
 "target": "gfx950", "provenance": {"kind": "untuned"}, "buckets": [
 {"max_m": 1, "template": "fused_moe/small_m",
  "constants": {"columns": 16, "gate_up_waves": 2, "row_tiles": 1, "down_waves": 2}},
 {"max_m": 64, "template": "fused_moe/mxmoe",
  "constants": {"block_m": 16, "f16in": 1, "g1_nt": 0, "g2": 0, "g2_nt": 0}}]}]})";
    const auto outcome = run_kiln({"verify", "--json", "--m", "1,40", table}, warm_cache());
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    const auto cases = outcome.json()["cases"];
    REQUIRE(cases.size() == 2);
    const std::vector<std::vector<std::string>> templates = {
        {"fused_moe/small_m", "fused_moe/small_m"},
        {"moe_sort/general", "moe_sort/general", "fused_moe/mxmoe_g1", "fused_moe/mxmoe_g2"}};
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const auto& stages = cases[i]["stages"];
        REQUIRE(stages.size() == templates[i].size());
        for (std::size_t j = 0; j < stages.size(); ++j) {
            CHECK(stages[j]["template"] == templates[i][j]);
            CHECK(stages[j]["counts"]["instructions"] > 0);
            CHECK((stages[j]["counts"]["mfma"] > 0) == (stages[j]["template"] != "moe_sort/general"));
        }
        for (const auto& [name, sum] : cases[i]["counts"].items()) {
            CAPTURE(name);
            std::uint64_t found = 0;
            for (const auto& stage : stages) {
                found += stage["counts"][name].get<std::uint64_t>();
            }
            CHECK(sum == found);
        }
    }
    CHECK(contains(cases[0]["stages"][0]["kernel"], "_gate_up"));
    CHECK(contains(cases[0]["stages"][1]["kernel"], "_down"));
    CHECK(contains(cases[1]["stages"][0]["kernel"], "kiln_moe_sort_general"));
    CHECK(contains(cases[1]["stages"][3]["kernel"], "kiln_fused_moe_mxmoe_g2"));
}

TEST_CASE("VerifyTakesRangesOfM") {
    const auto outcome = run_kiln(with({"verify", "--json", "--m", "8,1-2,2,31-33"}, kProblem), warm_cache());
    const auto document = outcome.json();
    std::vector<int> values;
    for (const auto& one : document["cases"]) {
        values.push_back(one["m"].get<int>());
    }
    CHECK(values == std::vector<int>{1, 2, 8, 31, 32, 33});
    CHECK(document["summary"]["passed"] == 5);
    CHECK(document["summary"]["declined"] == 1);
}

TEST_CASE("VerifyDeclinesWhatTheRowDoesNotCover") {
    const auto outcome = run_kiln(with({"verify", "--json", "--m", "33"}, kProblem), warm_cache());
    CHECK(outcome.exit_code == 1);  // nothing was checked
    const auto document = outcome.json();
    CHECK(document["summary"]["declined"] == 1);
    CHECK(document["cases"][0]["declined"]["reason"] == "m_too_large");

    const auto unknown = run_kiln({"verify", "--json", "linear", "n=48", "k=128"}, warm_cache());
    CHECK(unknown.exit_code == 1);
    CHECK(unknown.json()["cases"][0]["declined"]["reason"] == "shape");
}

TEST_CASE("ExplainNamesRowBucketTemplateAndKey") {
    const auto outcome = run_kiln(with({"explain", "--json", "--m", "3"}, kProblem), warm_cache());
    REQUIRE(outcome.exit_code == 0);
    const auto document = outcome.json();
    CHECK(document["served"] == true);
    CHECK(contains(document["row"]["origin"], "linear.json"));
    CHECK(document["bucket"]["max_m"].get<int>() >= 3);
    CHECK(document["template"] == "linear/small_m");
    CHECK(document["constants"].contains("waves"));
    CHECK(document["key"].get<std::string>().size() == 64);
    CHECK(document["cached"] == true);
}

TEST_CASE("ExplainSaysWhyAProblemIsDeclined") {
    const auto shape = run_kiln({"explain", "--json", "linear", "n=48", "k=128", "--m", "1"}, warm_cache());
    CHECK(shape.exit_code == 0);
    CHECK(shape.json()["served"] == false);
    CHECK(shape.json()["declined"]["reason"] == "shape");

    const auto processor =
        run_kiln(with({"explain", "--json", "--m", "1", "--target", "gfx942"}, kProblem), warm_cache());
    CHECK(processor.json()["declined"]["reason"] == "processor");
    CHECK(contains(processor.json()["declined"]["detail"], "gfx942"));

    const auto large = run_kiln(with({"explain", "--json", "--m", "33"}, kProblem), warm_cache());
    CHECK(large.json()["declined"]["reason"] == "m_too_large");
}

TEST_CASE("ShowPrintsSourceDisassemblyKeyAndMetadata") {
    const auto show = [&](const std::string& part) {
        return run_kiln(with({"show", "--m", "1", part}, kProblem), warm_cache());
    };
    const auto source = show("--source");
    CHECK(source.exit_code == 0);
    CHECK(contains(source.out, "kN = 4096"));
    CHECK(contains(source.out, "small_m.gfx950.hip"));
    const auto isa = show("--isa");
    CHECK(contains(isa.out, "kiln-listing 1"));
    CHECK(contains(isa.out, "v_mfma_"));
    CHECK(contains(isa.out, "s_endpgm"));
    const auto key = show("--key");
    CHECK(contains(key.out, "\"target\": \"gfx950\""));
    const auto meta = show("--meta");
    CHECK(contains(meta.out, "\"scratch_bytes\": 0"));

    const auto both = run_kiln(with({"show", "--m", "1", "--isa", "--key"}, kProblem), warm_cache());
    CHECK(both.exit_code == 2);
}

TEST_CASE("LsListsEntriesAndShowFindsThemByKey") {
    const auto listed = run_kiln({"ls", "--json"}, warm_cache());
    REQUIRE(listed.exit_code == 0);
    const auto entries = listed.json()["entries"];
    const auto kernel = std::ranges::find_if(
        entries, [](const auto& entry) { return entry.value("operator", "") == "linear"; });
    REQUIRE(kernel != entries.end());
    const auto key = (*kernel)["key"].template get<std::string>();
    const auto shown = run_kiln({"show", "--json", "--meta", key.substr(0, 12)}, warm_cache());
    CHECK(shown.exit_code == 0);
    CHECK(shown.json()["meta"]["kernel"] == (*kernel)["kernel"]);

    const auto none = run_kiln({"show", "ffffffffffffffff"}, warm_cache());
    CHECK(none.exit_code == 2);
    CHECK(contains(none.err, "found 0"));
}

TEST_CASE("UnknownVariableIsAWarningThatNamesTheNearest") {
    auto environment = warm_cache();
    environment.emplace("KILN_CACHE_DRI", "x");
    const auto outcome = run_kiln({"ls"}, environment);
    CHECK(outcome.exit_code == 0);
    CHECK(contains(outcome.err, "KILN_CACHE_DRI"));
    CHECK(contains(outcome.err, "KILN_CACHE_DIR"));
}

TEST_CASE("BadUsageEndsWithTwoAndSaysWhat") {
    const std::vector<std::vector<std::string>> bad = {
        {},
        {"melt"},
        {"warm", "--frobnicate"},
        {"warm", "linaer"},
        {"warm", "n=4096"},
        {"warm", "linear", "q=1"},
        {"warm", "linear", "n=many"},
        {"warm", "linear", "n=7"},
        {"warm", "linear", "n=4096", "--target", "GFX?"},
        {"warm", "no-such-table.json"},
        {"warm", "--jobs", "0"},
        {"warm", "--jobs", "-1"},
        {"warm", "--jobs", "two"},
        {"warm", "--jobs", "1.5"},
        {"warm", "--jobs", "99999999999999999999"},
        {"warm", "--jobs"},
        {"warm", "--dry-run=perhaps"},
        {"warm", std::string(100'000, 'x')},
        {"warm", "linear", "n=" + std::string(100'000, '9')},
        {"warm", "linear", "n=4096", "--target", std::string(100'000, 'g')},
        {"--frobnicate"},
        {"--device"},
        {"--device", "abacus", "ls"},
        {"verify", "--frobnicate"},
        {"verify", "--m"},
        {"verify", "linear", "n=4096", "k=2048", "--seed", "x"},
        {"verify", "linear", "n=4096", "k=2048", "--m", std::string(100'000, '1')},
        {"explain"},
        {"explain", "--frobnicate"},
        {"explain", "linear", "n=4096", "k=2048", "--m"},
        {"show"},
        {"show", "--frobnicate"},
        {"show", std::string(100'000, 'f')},
        {"ls", "extra"},
        {"ls", "--frobnicate"},
        {"doctor", "extra"},
        {"doctor", "--frobnicate"},
        {"check-table", "--frobnicate"},
        {"stats", "--frobnicate"},
        {"prune", "--max-size", "much"},
        {"prune", "--max-age"},
        {"clear", "--frobnicate"},
        {"suggest"},
        {"suggest", "--frobnicate"},
        {"warm", "linear", "n=4096", "--target", "gfx1100"},
        {"explain", "linear", "n=4096", "k=2048"},
        {"explain", "linear", "n=4096", "--m", "1"},
        {"explain", "--m", "1", "linear", "n=4096", "k=2048", "linear", "n=4608", "k=4096"},
        {"verify", "linear", "n=4096", "k=2048", "--m", "0"},
        {"verify", "linear", "n=4096", "k=2048", "--m", "1,x"},
        {"verify", "linear", "n=4096", "k=2048", "--m", "1,"},
        {"verify", "linear", "n=4096", "k=2048", "--m", "3-2"},
        {"verify", "linear", "n=4096", "k=2048", "--m", "1-"},
        {"verify", "linear", "n=4096", "k=2048", "--m", "-3"},
        {"verify", "linear", "n=4096", "k=2048", "--m", "1-2-3"},
        {"verify", "linear", "n=4096", "k=2048", "--m", "1-9223372036854775807"},
        {"verify", "linear", "n=4096", "k=2048", "--seed", "-1"},
        {"verify", "linear", "n=4096", "k=2048", "--ordinal", "7"},
        {"verify", "linear", "n=4096", "k=2048", "--target", "gfx942"},
        {"explain", "linear", "n=4096", "k=2048", "--m", "0"},
        {"explain", "linear", "n=4096", "k=2048", "--m", "9223372036854775808"},
        {"show", "linear", "n=4096", "k=2048", "--m", "33"},
        // An empty value asks for no default, and takes no other word for its own.
        {"clear", "--cache-dir", ""},
        {"clear", "--cache-dir=", "--cache-dir=/nonexistent/cache"},
        {"ls", "--device", ""},
        {"prune", "--max-size", ""},
        {"prune", "--max-age", ""},
        {"suggest", "linear", "n=48", "k=384", "--out", ""},
        {"suggest", "linear", "n=48", "k=384", "--target", ""},
        {"warm", "linear", "--jobs", ""},
        {"warm", "linear", "--target="},
        {"verify", "linear", "n=4096", "k=2048", "--m", ""},
        {"ls", "--json=x"},
    };
    for (const auto& arguments : bad) {
        const auto outcome = run_kiln(arguments, warm_cache());
        std::string line;
        for (const auto& word : arguments) {
            line += ' ';
            line += word;
        }
        INFO("kiln" << line << "\n" << outcome.out << outcome.err);
        CHECK(outcome.exit_code == 2);
        CHECK_FALSE(outcome.err.empty());
        CHECK(outcome.err.size() < 10'000);
        CHECK_FALSE(contains(outcome.err, "KILN_DEVICE"));
        CHECK(outcome.out.empty());

        const auto as_json = run_kiln(with(arguments, {"--json"}), warm_cache());
        CHECK(as_json.exit_code == 2);
        CHECK_FALSE(as_json.json()["error"]["message"].get<std::string>().empty());
    }
}

TEST_CASE("TheDeviceOptionTakesWhatTheVariableTakes") {
    for (const char* driver : {"auto", "hip", "cuda", "sim"}) {
        CAPTURE(driver);
        CHECK(run_kiln({"--device", driver, "ls"}, warm_cache()).exit_code == 0);
    }
}

TEST_CASE("BadSettingsEndWithTwoAndNameTheVariable") {
    for (const auto& [name, value] : std::map<std::string, std::string>{{"KILN_JIT", "perhaps"},
                                                                        {"KILN_DEVICE", "abacus"},
                                                                        {"KILN_TARGET", "GFX950"},
                                                                        {"KILN_LOG", "loud"}}) {
        auto environment = warm_cache();
        environment[name] = value;
        const auto outcome = run_kiln({"ls"}, environment);
        CHECK_MESSAGE(outcome.exit_code == 2, name);
        CHECK_MESSAGE(contains(outcome.err, name), outcome.err);
        CHECK_MESSAGE(contains(outcome.err, value), outcome.err);
    }
}

TEST_CASE("FaultyTableEndsWithTwoAndNamesThePlace") {
    const TemporaryFolder folder;
    const auto table = folder.path() / "mine.json";
    std::ofstream(table) << "{\"schema\": 1,\n \"rows\": [{\"operator\": \"linear\"}]}\n";
    const auto outcome = run_kiln({"warm", "--json", table.string()}, warm_cache());
    CHECK(outcome.exit_code == 2);
    CHECK(contains(outcome.err, table.string()));
    CHECK(contains(outcome.err, ".json:2:"));
    CHECK(contains(outcome.err, "/rows/0"));
    CHECK(contains(outcome.json()["error"]["message"], "/rows/0"));  // one document even then
}

TEST_CASE("OutputThatCanNotBeWrittenIsNoSuccess") {
    auto environment = warm_cache();
    for (const auto& arguments : {std::vector<std::string>{"ls"}, {"ls", "--json"}, {"--help"}}) {
        CHECK(run_kiln(arguments, environment, {.out = "/dev/full"}).exit_code == 3);
    }
    // A reader that has seen enough is content, however much was to come.
    const auto leave = [] {
        int ends[2];
        return ::pipe(ends) == 0 && ::dup2(ends[1], STDOUT_FILENO) >= 0 && ::close(ends[0]) == 0 &&
               ::close(ends[1]) == 0;
    };
    for (const auto& arguments : {with({"show", "--m", "1", "--isa", "--json"}, kProblem), {"--help"}}) {
        const auto left = run_kiln(arguments, environment, {.before = leave});
        CHECK(left.exit_code == 0);
        CHECK(left.err.empty());
    }
    // Lost diagnostics lose nothing else.
    const auto declined =
        run_kiln(with({"verify", "--json", "--m", "33"}, kProblem), environment, {.err = "/dev/full"});
    CHECK(declined.exit_code == 1);
    CHECK(declined.json()["summary"]["declined"] == 1);
}

TEST_CASE("WarmingWithoutACacheIsNoSuccess") {
    const TemporaryFolder folder;
    std::ofstream(folder.path() / "file") << "x";
    const auto outcome =
        run_kiln(with({"warm", "--json"}, kProblem), {{"KILN_CACHE_DIR", (folder.path() / "file").string()}});
    CHECK(outcome.exit_code == 3);
    CHECK(outcome.json()["summary"]["lost"] == outcome.json()["summary"]["compiled"]);
}

TEST_CASE("MissingCompilerIsTheEnvironmentsFault") {
    const TemporaryFolder folder;
    const std::map<std::string, std::string> environment = {
        {"KILN_CACHE_DIR", folder.path().string()}, {"KILN_WORKER", (folder.path() / "none").string()}};
    const auto outcome = run_kiln(with({"warm"}, kProblem), environment);
    CHECK(outcome.exit_code == 3);
    CHECK(contains(outcome.err, "none"));
    // Once, not once for each of the kernels.
    const auto reason = outcome.err.find("can not be compiled");
    REQUIRE(reason != std::string::npos);
    CHECK(outcome.err.find("can not be compiled", reason + 1) == std::string::npos);
    CHECK(contains(outcome.err, "more: "));
    auto on_a_device = environment;
    on_a_device.emplace("KILN_DEVICE", "sim");
    CHECK(run_kiln(with({"verify", "--m", "1"}, kProblem), on_a_device).exit_code == 3);
}

TEST_CASE("JitOffMakesAMissAnErrorAndAHitNone") {
    const TemporaryFolder folder;
    const auto missed = run_kiln(with({"warm", "--json"}, kProblem),
                                 {{"KILN_CACHE_DIR", folder.path().string()}, {"KILN_JIT", "off"}});
    CHECK(missed.exit_code == 3);  // as where there is no compiler
    CHECK(missed.json()["summary"]["compiled"] == 0);
    CHECK(contains(missed.err, "KILN_JIT"));

    auto environment = warm_cache();
    environment.emplace("KILN_JIT", "off");
    CHECK(run_kiln(with({"warm"}, kProblem), environment).exit_code == 0);
}

TEST_CASE("HelpAndVersionAreNoErrors") {
    CHECK(contains(run_kiln({"--version"}, {}).out, "kiln "));
    const auto help = run_kiln({"--help"}, {});
    CHECK(help.exit_code == 0);
    for (const char* command : {"warm", "verify", "explain", "show", "ls", "doctor", "130"}) {
        CHECK(contains(help.out, command));
    }
    // Each command's help stands alone: what it does, its options, how it ends.
    const auto commands = {"warm",  "verify", "explain", "show",        "ls",     "stats",
                           "prune", "clear",  "doctor",  "check-table", "suggest"};
    for (const std::string command : commands) {
        const auto own = run_kiln({command, "--help"}, {});
        CHECK(own.exit_code == 0);
        CHECK_MESSAGE(contains(own.out, "Exit codes: 0 "), command);
        CHECK_MESSAGE(contains(own.out, "--help"), command);
        CHECK_MESSAGE(contains(own.out, "--json"), command);
    }
}
