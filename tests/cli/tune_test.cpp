// kiln tune as its users meet it: real compiles, real processes, the simulator and its cost model.

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "run_kiln.hpp"
#include "runtime/embedded/embedded.hpp"

namespace fs = std::filesystem;
using kiln::test::contains;
using kiln::test::contents;
using kiln::test::run_kiln;
using kiln::test::Running;
using kiln::test::TemporaryFolder;
using kiln::test::Variables;
using kiln::test::with;
using nlohmann::json;

namespace {

using namespace std::chrono_literals;

// Six candidates up to M = 4: 1 wave with 1, 2 and 4 blocks ahead, 2 with 1 and 2, 4 with 1, in this order.
const std::vector<std::string> kTune = {"tune", "linear", "n=16", "k=512"};

std::vector<json> lines_of(const fs::path& path) {
    std::vector<json> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        auto one = json::parse(line, nullptr, false);
        REQUIRE_FALSE(one.is_discarded());
        one.erase("date");
        lines.push_back(std::move(one));
    }
    return lines;
}

void replace(std::string& text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
}

// A cache of all tests of this file, and a folder of each.
struct Place {
    TemporaryFolder folder;
    Variables environment;
    const fs::path candidates = folder.path() / "candidates.jsonl";
    const fs::path out = folder.path() / "rows.json";

    Place() {
        static const TemporaryFolder cache;
        environment = {{"KILN_CACHE_DIR", cache.path().string()}, {"KILN_DEVICE", "sim"}};
    }

    fs::path write(const std::string& name, const std::string& text) const {
        const auto path = folder.path() / name;
        fs::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary) << text;
        return path;
    }

    // A template of the user's that has everything wrong with it that there is, each with constants of its
    // own.
    void plant_faults() {
        auto text = template_text();
        replace(text, "    const Buffer output(out,",
                "    static_assert(!(kWaves == 1 && kBlocksAhead == 1), \"planted\");\n"
                "    if constexpr (kWaves == 4) {\n"
                "        while (m > 0) {\n"
                "            asm volatile(\"s_nop 0\");\n"
                "        }\n"
                "    }\n"
                "    const Buffer output(out,");
        use_template(text);
    }

    // One that is wrong with two waves.
    static std::string template_text() {
        const auto* file = kiln::embedded::find(kiln::embedded::kernel_files(), "linear/small_m.gfx950.hip");
        REQUIRE(file != nullptr);
        std::string text(file->text);
        replace(text, "pack_bf16(sum.x, sum.y)", "pack_bf16(kWaves == 2 ? sum.x + 1000.0f : sum.x, sum.y)");
        return text;
    }

    void use_template(const std::string& text) {
        environment["KILN_KERNEL_PATH"] =
            write("kernels/linear/small_m.gfx950.hip", text).parent_path().parent_path().string();
    }

    // A table with one row for the problem, of the kind of provenance.
    void use_row(const std::string& kind, int waves = 1, int blocks_ahead = 1) {
        environment["KILN_SHAPES_PATH"] =
            write("shapes.json",
                  R"({"schema": 1, "rows": [{"operator": "linear", "problem": {"n": 16, "k": 512},
                      "target": "gfx950", "buckets": [{"max_m": 16, "template": "linear/small_m",
                      "constants": {"tiles_n": 1, "waves": )" +
                      std::to_string(waves) + R"(, "lane_rows": 16, "blocks_ahead": )" +
                      std::to_string(blocks_ahead) + R"(}}], "provenance": {"kind": ")" + kind + "\"}}]}")
                .string();
    }

    // The process of a tune that tries the candidate whose table has `text` in it.
    static pid_t server_that_tries(pid_t tune, const std::string& text) {
        std::error_code error;
        for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
            auto line = contents(it->path() / "cmdline");
            std::ranges::replace(line, '\0', ' ');
            if (!contains(line, "tune-server " + std::to_string(tune) + " ")) {
                continue;
            }
            std::error_code none;
            for (const auto& fd : fs::directory_iterator(it->path() / "fd", none)) {
                std::error_code gone;
                if (contains(fs::read_symlink(fd.path(), gone).string(), "memfd:candidate") &&
                    contains(contents(fd.path()), text)) {
                    return std::stoi(it->path().filename());
                }
            }
        }
        return -1;
    }

    static bool wait_for(const std::function<bool()>& done) {
        const auto deadline = std::chrono::steady_clock::now() + 120s;
        while (!done() && std::chrono::steady_clock::now() < deadline) {
            std::this_thread::sleep_for(2ms);
        }
        return done();
    }
    [[nodiscard]] std::size_t num_lines() const {
        const auto text = contents(candidates);
        return static_cast<std::size_t>(std::ranges::count(text, '\n'));
    }
};

}  // namespace

TEST_CASE_FIXTURE(Place, "TuneRanksByAModelSaysSoAndWritesARow") {
    const auto outcome =
        run_kiln(with(kTune, {"--m", "4", "--out", out.string(), "--all-candidates", candidates.string()}),
                 environment);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK(contains(outcome.out, "model, not measured"));
    const auto lines = lines_of(candidates);
    REQUIRE(lines.size() == 7);
    double best = 1e9;
    for (std::size_t i = 0; i < 6; ++i) {
        CHECK(lines[i]["record"] == "candidate");
        CHECK(lines[i]["kind"] == "model");
        CHECK(lines[i]["status"] == "ok");
        CHECK(lines[i]["error"].get<double>() <= lines[i]["bound"].get<double>());
        const auto& cost = lines[i]["cost"];
        REQUIRE(cost["kernels"].size() == 1);
        CHECK(cost["kernels"][0]["work_groups"] == 1);
        best = std::min(best, lines[i]["us"].get<double>());
    }
    CHECK(lines[6]["record"] == "choice");
    CHECK(lines[6]["winner"]["us"] == best);
    CHECK(lines[6]["why"] == "nothing serves it now");

    const auto table = json::parse(contents(out));
    REQUIRE(table["rows"].size() == 1);
    const auto& row = table["rows"][0];
    CHECK(row["buckets"].size() == 1);
    CHECK(row["buckets"][0]["max_m"] == 4);
    CHECK(row["buckets"][0]["constants"] == lines[6]["winner"]["bucket"]["constants"]);
    const auto& provenance = row["provenance"];
    CHECK(provenance["kind"] == "model");
    CHECK(contains(provenance["note"], "not measured"));
    CHECK(provenance["device"] == lines[0]["device"]["name"]);
    CHECK(provenance["tuned"][0]["runner_up"].contains("constants"));
    for (const char* member : {"driver", "compiler", "date"}) {
        CHECK_FALSE(provenance[member].get<std::string>().empty());
    }
    CHECK(run_kiln({"check-table", out.string()}, environment).exit_code == 0);
    const auto served =
        run_kiln({"explain", "--json", out.string(), "linear", "n=16", "k=512", "--m", "4"}, environment);
    if (served.exit_code == 0) {
        CHECK(served.json()["served"] == true);
    }
}

TEST_CASE_FIXTURE(Place, "WrongHangingAndBrokenCandidatesAreRecordedAndPassedOver") {
    plant_faults();
    const auto outcome = run_kiln(
        with(kTune, {"--json", "--m", "4", "--timeout", "10", "--all-candidates", candidates.string()}),
        environment);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 0);
    const auto lines = lines_of(candidates);
    REQUIRE(lines.size() == 7);
    CHECK(lines[0]["status"] == "failed");
    CHECK(contains(lines[0]["message"], "planted"));
    CHECK(lines[1]["status"] == "ok");
    CHECK(lines[2]["status"] == "ok");
    for (const std::size_t wrong : {3, 4}) {
        CHECK(lines[wrong]["status"] == "wrong");
        CHECK_FALSE(lines[wrong].contains("us"));
        CHECK_FALSE(lines[wrong].contains("cost"));
    }
    CHECK(lines[5]["status"] == "hung");
    CHECK(contains(lines[5]["message"], "10 s"));
    CHECK(lines[6]["winner"]["bucket"]["constants"]["waves"] == 1);
    CHECK(outcome.json()["candidates"] == json{{"failed", 1}, {"hung", 1}, {"ok", 2}, {"wrong", 2}});
}

TEST_CASE_FIXTURE(Place, "AProcessThatDiesIsOneCandidatesEnd") {
    plant_faults();
    Running running(with(kTune, {"--m", "4", "--timeout", "300", "--all-candidates", candidates.string()}),
                    environment);
    pid_t server = -1;
    REQUIRE(wait_for([&] {
        server = server_that_tries(running.pid(), "\"waves\": 4");
        return server > 0 || running.ended();
    }));
    REQUIRE(server > 0);
    ::kill(server, SIGABRT);  // which no sanitizer takes for its own
    const auto outcome = running.wait();
    INFO(outcome.err);
    CHECK(outcome.exit_code == 0);
    const auto lines = lines_of(candidates);
    REQUIRE(lines.size() == 7);
    CHECK(lines[5]["status"] == "crashed");
    CHECK(contains(lines[5]["message"], "signal 6"));
}

TEST_CASE_FIXTURE(Place, "AKilledTuneGoesOnToTheSameFile") {
    const auto whole = folder.path() / "whole.jsonl";
    const auto arguments = [&](const fs::path& file, const fs::path& rows) {
        return with(kTune, {"--m", "4,8", "--all-candidates", file.string(), "--out", rows.string()});
    };
    const auto once = run_kiln(arguments(whole, folder.path() / "whole.json"), environment);
    INFO(once.err);
    REQUIRE(once.exit_code == 0);
    const auto expected = lines_of(whole);
    REQUIRE(expected.size() > 8);

    for (const int signal : {SIGKILL, SIGINT}) {
        Running running(with(arguments(candidates, out), {"--resume"}), environment);
        const auto before = num_lines();
        REQUIRE(wait_for([&] { return num_lines() >= before + 2 || running.ended(); }));
        running.send(signal);
        const auto ended = running.wait();
        INFO(ended.err);
        CHECK(ended.exit_code == (signal == SIGINT ? 130 : 128 + signal));
        CHECK(num_lines() < expected.size());
        CHECK_FALSE(fs::exists(out));
        // What a kill in the middle of a line leaves.
        std::ofstream(candidates, std::ios::app) << R"({"schema":1,"record":"cand)";
    }
    const auto rest = run_kiln(with(arguments(candidates, out), {"--resume"}), environment);
    INFO(rest.err);
    CHECK(rest.exit_code == 0);
    CHECK(lines_of(candidates) == expected);
    const auto rows = [](const fs::path& path) {
        auto table = json::parse(contents(path));
        table["rows"][0]["provenance"].erase("date");
        return table;
    };
    CHECK(rows(out) == rows(folder.path() / "whole.json"));
    // Once more: there is nothing left to try.
    REQUIRE(run_kiln(with(arguments(candidates, out), {"--resume"}), environment).exit_code == 0);
    CHECK(lines_of(candidates) == expected);
}

TEST_CASE_FIXTURE(Place, "ResumeTriesAgainWhatIsOfOtherCode") {
    const auto arguments = with(kTune, {"--m", "4", "--resume", "--all-candidates", candidates.string()});
    const auto resume = [&](const std::vector<std::string>& more = {}) {
        const auto outcome = run_kiln(with(arguments, more), environment);
        INFO(outcome.err);
        REQUIRE(outcome.exit_code == 0);
        return lines_of(candidates);
    };
    use_template(template_text());
    const auto faulty = resume();
    REQUIRE(faulty.size() == 7);
    CHECK(faulty[3]["status"] == "wrong");
    CHECK(resume() == faulty);

    // The template's text is another one now: everything is tried again, and that is what is chosen from.
    environment.erase("KILN_KERNEL_PATH");
    const auto both = resume();
    REQUIRE(both.size() == 14);
    CHECK(std::vector(both.begin(), both.begin() + 7) == faulty);
    for (std::size_t i = 7; i < 13; ++i) {
        CHECK(both[i]["status"] == "ok");
        CHECK(both[i]["bucket"] == faulty[i - 7]["bucket"]);
        CHECK(both[i]["code"] != faulty[i - 7]["code"]);
    }
    CHECK(resume() == both);

    // The table has a bucket in force now, as none was tried: that is, as it stands and ending at this M.
    use_row("untuned");
    const auto third = resume();
    REQUIRE(third.size() == 17);
    CHECK(third[14]["present"] == true);
    CHECK(third[15]["bucket"]["constants"] == third[14]["bucket"]["constants"]);
    CHECK(third[16]["present"]["bucket"] == third[14]["bucket"]);
}

TEST_CASE_FIXTURE(Place, "WhatCrashedIsTriedAgainOnlyWhenAskedFor") {
    const auto arguments = with(kTune, {"--m", "4", "--all-candidates", candidates.string(), "--json"});
    REQUIRE(run_kiln(arguments, environment).exit_code == 0);
    const auto whole = lines_of(candidates);
    // As if the process that tried the best one had died of something else.
    auto text = contents(candidates);
    const auto best = std::ranges::find(whole, whole.back()["winner"]["bucket"],
                                        [](const json& line) { return line["bucket"]; });
    REQUIRE(best != whole.end());
    std::size_t begin = 0;
    for (auto line = whole.begin(); line != best; ++line) {
        begin = text.find('\n', begin) + 1;
    }
    text.replace(text.find("\"status\":\"ok\"", begin), 13, "\"status\":\"crashed\"");
    std::ofstream(candidates, std::ios::binary) << text;

    const auto kept = run_kiln(with(arguments, {"--resume"}), environment);
    CHECK(kept.json()["candidates"] == json{{"crashed", 1}, {"ok", 5}});
    const auto retried = run_kiln(with(arguments, {"--resume", "--retry"}), environment);
    INFO(retried.err);
    CHECK(retried.json()["candidates"] == json{{"ok", 6}});
    const auto after = lines_of(candidates);
    CHECK(after[after.size() - 1] == whole.back());
    CHECK(after[after.size() - 2]["status"] == "ok");
}

TEST_CASE_FIXTURE(Place, "AModelNeverTakesThePlaceOfAMeasuredRow") {
    use_row("measured");
    const auto outcome =
        run_kiln(with(kTune, {"--m", "4", "--min-improvement", "0", "--out", out.string()}), environment);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(contains(outcome.out, "shapes.json"));
    CHECK(contains(outcome.out, "is measured, and a model never takes its place"));
    CHECK_FALSE(fs::exists(out));

    // Nor in the file that rows are put into.
    const auto measured = contents(environment["KILN_SHAPES_PATH"]);
    write("rows.json", measured);
    environment.erase("KILN_SHAPES_PATH");
    const auto into = run_kiln(with(kTune, {"--json", "--m", "4", "--out", out.string()}), environment);
    CHECK(into.exit_code == 0);
    CHECK(into.json()["problems"][0]["new_row"] == false);
    CHECK(contains(into.json()["problems"][0]["kept_because"], "rows.json"));
    CHECK(contents(out) == measured);
}

TEST_CASE_FIXTURE(Place, "ThePresentBucketStaysUnlessBeatenAndOtherRowsAreKept") {
    use_row("untuned");
    const auto stays = run_kiln(
        with(kTune, {"--json", "--m", "4", "--min-improvement", "99", "--out", out.string()}), environment);
    INFO(stays.out << stays.err);
    CHECK(stays.exit_code == 0);
    CHECK(stays.json()["problems"][0]["choices"][0]["stays"] == true);
    CHECK(stays.json()["problems"][0]["choices"][0]["winner"]["bucket"]["max_m"] == 16);
    CHECK_FALSE(fs::exists(out));

    const std::string other =
        R"({"schema": 1, "rows": [{"operator": "linear", "problem": {"n": 32, "k": 256}, "target": "gfx950",
            "buckets": [{"max_m": 4, "template": "linear/small_m", "constants":
            {"tiles_n": 1, "waves": 1, "lane_rows": 4, "blocks_ahead": 1}}], "provenance": {"kind": "untuned"}}]})";
    write("rows.json", other);
    const auto beaten = run_kiln(
        with(kTune, {"--json", "--m", "4", "--min-improvement", "0", "--out", out.string()}), environment);
    INFO(beaten.out << beaten.err);
    REQUIRE(beaten.exit_code == 0);
    REQUIRE(beaten.json()["problems"][0]["choices"][0]["stays"] == false);
    const auto text = contents(out);
    CHECK(text.starts_with(other.substr(0, other.size() - 2)));
    const auto row = json::parse(text)["rows"][1];
    // What was not looked at stays as it was.
    REQUIRE(row["buckets"].size() == 2);
    CHECK(row["buckets"][0]["max_m"] == 4);
    CHECK(row["buckets"][1]["max_m"] == 16);
    CHECK(row["buckets"][1]["constants"]["lane_rows"] == 16);
    CHECK(row["provenance"]["before"]["kind"] == "untuned");
    CHECK(run_kiln({"check-table", out.string()}, environment).exit_code == 0);
}

TEST_CASE_FIXTURE(Place, "ADemandIsTunedInTheRowOfTheProblemsWithoutIt") {
    // Of small_m, with four waves for what serves now, only candidates with eight can be compiled.
    const auto* file = kiln::embedded::find(kiln::embedded::kernel_files(), "fused_moe/small_m.gfx950.hip");
    REQUIRE(file != nullptr);
    std::string text(file->text);
    replace(
        text, "extern \"C\"",
        "static_assert(kiln::constants::kDownWaves == 8 && kiln::constants::kColumns == 16, \"left out\");\n"
        "extern \"C\"");
    environment["KILN_KERNEL_PATH"] =
        write("kernels/fused_moe/small_m.gfx950.hip", text).parent_path().parent_path().string();
    const std::string table =
        R"({"schema": 1, "rows": [{"operator": "fused_moe", "problem": {"hidden": 256, "intermediate": 256,
            "experts": 4, "slots": 2, "weights": "mxfp4"}, "target": "gfx950", "buckets": [
            {"max_m": 4, "template": "fused_moe/mxmoe", "constants":
                {"block_m": 16, "f16in": 1, "g1_nt": 1, "g2": 0, "g2_nt": 0}},
            {"max_m": 4, "template": "fused_moe/small_m", "constants":
                {"columns": 16, "gate_up_waves": 2, "row_tiles": 1, "down_waves": 4}}],
            "provenance": {"kind": "untuned"}}]})";
    environment["KILN_SHAPES_PATH"] = write("shapes.json", table).string();
    write("rows.json", table);
    const auto outcome = run_kiln(
        {"tune", "fused_moe", "hidden=256", "intermediate=256", "experts=4", "slots=2", "weights=mxfp4",
         "deterministic=1", "--m", "4", "--json", "--template", "fused_moe/small_m", "--out", out.string()},
        environment);
    INFO(outcome.out << outcome.err);
    REQUIRE(outcome.exit_code == 0);
    const auto choice = outcome.json()["problems"][0]["choices"][0];
    CHECK(contains(choice["why"], "failed"));
    CHECK(choice["winner"]["bucket"]["constants"]["down_waves"] == 8);
    const auto rows = json::parse(contents(out))["rows"];
    REQUIRE(rows.size() == 1);
    CHECK_FALSE(rows[0]["problem"].contains("deterministic"));
    REQUIRE(rows[0]["buckets"].size() == 2);
    CHECK(rows[0]["buckets"][0]["template"] == "fused_moe/mxmoe");
    CHECK(rows[0]["buckets"][1]["constants"] == choice["winner"]["bucket"]["constants"]);
    CHECK(run_kiln({"check-table", out.string()}, environment).exit_code == 0);
}

TEST_CASE_FIXTURE(Place, "TunesThatWriteTheSameTableKeepEachOthersRows") {
    const auto shared = (folder.path() / "config" / "shapes" / "mine.json").string();  // folders are made
    const auto tune = [&](const std::string& n) {
        return std::vector<std::string>{"tune", "linear", n, "k=512", "--m", "4", "--out", shared};
    };
    // The first one holds the row of the second only when it reads the table again at its end: the second has
    // ended before the first is let go on.
    Running first(with(tune("n=16"), {"--all-candidates", candidates.string()}), environment);
    REQUIRE(wait_for([&] { return num_lines() >= 1 || first.ended(); }));
    first.send(SIGSTOP);
    const auto second = run_kiln(tune("n=32"), environment);
    first.send(SIGCONT);
    const auto ended = first.wait();
    INFO(ended.err);
    INFO(second.err);
    CHECK(ended.exit_code == 0);
    CHECK(second.exit_code == 0);
    CHECK(json::parse(contents(shared))["rows"].size() == 2);
}

TEST_CASE_FIXTURE(Place, "WhatTheMachineLacksIsNoCandidatesFault") {
    const TemporaryFolder cache;
    environment["KILN_CACHE_DIR"] = cache.path().string();
    environment["KILN_JIT"] = "off";
    const auto outcome =
        run_kiln(with(kTune, {"--m", "4", "--all-candidates", candidates.string()}), environment);
    CHECK(outcome.exit_code == 3);
    CHECK(contains(outcome.err, "KILN_JIT"));
    CHECK(contents(candidates).empty());

    // Nor does a tune begin whose table can not be written.
    const auto blocked = write("file", "text") / "rows.json";
    const auto nowhere = run_kiln(with(kTune, {"--m", "4", "--out", blocked.string()}), environment);
    CHECK(nowhere.exit_code == 3);
    CHECK(contains(nowhere.err, "create " + blocked.parent_path().string()));
}

TEST_CASE_FIXTURE(Place, "TuneRefusesWhatCanNotBeMeant") {
    const auto expect = [&](const std::vector<std::string>& arguments, const std::string& said) {
        const auto outcome = run_kiln(arguments, environment);
        INFO(outcome.err);
        CHECK(outcome.exit_code == 2);
        CHECK(contains(outcome.err, said));
    };
    expect(kTune, "--m");
    expect(with(kTune, {"--m", "0"}), "--m");
    expect(with(kTune, {"--m", "4", "--error-bound", "2"}), "--error-bound");
    expect(with(kTune, {"--m", "4", "--min-improvement", "100"}), "--min-improvement");
    expect(with(kTune, {"--m", "4", "--timeout", "0"}), "--timeout");
    expect(with(kTune, {"--m", "4", "--iters", "0"}), "--iters");
    expect(with(kTune, {"--m", "4", "--resume"}), "--all-candidates");
    expect(with(kTune, {"--m", "4", "--retry"}), "--resume");
    expect(with(kTune, {"--m", "4", "--template", "linear/large_m"}),
           "one of fused_moe/mxmoe, fused_moe/small_m, linear/small_m");
    expect(with(with(kTune, {"linear", "n=16", "k=512"}), {"--m", "4"}), "again");
    expect({"tune", "table.json", "--m", "4"}, "expected OPERATOR");
    expect(with(kTune, {"--m", "65"}), "declares what is to be tried");

    const auto notes = write("notes.txt", "my notes\n");
    for (const auto& more : {std::vector<std::string>{}, {"--resume"}}) {
        expect(with(with(kTune, {"--m", "4", "--all-candidates", notes.string()}), more), notes.string());
    }
    expect(with(kTune, {"--m", "4", "--out", notes.string()}), "--out");
    CHECK(contents(notes) == "my notes\n");
    // A file whose only line has no end is no result that was cut off.
    const auto table = write("table.json", R"({"schema":1,"rows":[]})");
    expect(with(kTune, {"--m", "4", "--resume", "--all-candidates", table.string()}), table.string());
    CHECK(contents(table) == R"({"schema":1,"rows":[]})");
    const auto same = (folder.path() / "." / "rows.json").string();
    expect(with(kTune, {"--m", "4", "--all-candidates", out.string(), "--out", same}),
           "another file than --all-candidates");
    CHECK_FALSE(fs::exists(out));

    // Results under other conditions.
    REQUIRE(
        run_kiln(with(kTune, {"--m", "4", "--all-candidates", candidates.string()}), environment).exit_code ==
        0);
    expect(with(kTune, {"--m", "4", "--all-candidates", candidates.string()}), "--resume goes on");
    expect(with(kTune, {"--m", "4", "--seed", "7", "--resume", "--all-candidates", candidates.string()}),
           "seed");
}
